/* SPDX-License-Identifier: Apache-2.0
 *
 * AMQP properties and header table on one side, headers of NServiceBus on the other.
 * Pure functions.
 *
 *   property         header                             when received
 *   message-id       the message's id                   else header NServiceBus.MessageId
 *   correlation-id   NServiceBus.CorrelationId          replaces the header
 *   reply-to         NServiceBus.ReplyToAddress         replaces the header
 *   content-type     NServiceBus.ContentType            replaces the header
 *   type             NServiceBus.EnclosedMessageTypes   only if the header is absent
 */
#ifndef WB_AMQP_HEADERS_H
#define WB_AMQP_HEADERS_H

#include <amqp.h>
#include <amqp_framing.h>
#include <waybill/sys/transport.h>

/** What the strings of a message need. */
typedef struct wb_amqp_size {
    size_t header_count;
    size_t text_size;
} wb_amqp_size;

/** Measure what wb_amqp_headers_read() will write. */
wb_amqp_size wb_amqp_headers_measure(const amqp_basic_properties_t *properties);

/** Fill id, headers and header_count of `message`. `headers` and `text` have the
 *  measured sizes and become the message's. Values that are not strings are written
 *  as NServiceBus writes them; the broker's bookkeeping headers are left out. */
void wb_amqp_headers_read(const amqp_basic_properties_t *properties, wb_incoming *message,
                          wb_header *headers, char *text);

/** How often the message was delivered before: what a quorum queue counted, and at
 *  least once when it was redelivered. The count is a header that a publisher can
 *  forge: without the flag, which is the broker's, it counts for nothing. */
uint32_t wb_amqp_delivery_count(const amqp_basic_properties_t *properties, int redelivered);

/** Make the properties of an operation. Everything points into the operation, and to
 *  `entries`, which has room for twice header_count. *ret_size is an upper bound of the
 *  encoded size. Whatever the broker would refuse is put so that it does not: headers
 *  that it reads as routes are lists, the reply address of a consumer it does not know
 *  stands in its header alone.
 *  @return NULL, or why the message can never be sent: it is too large. */
const char *wb_amqp_properties_make(const wb_operation *operation, amqp_table_entry_t *entries,
                                    amqp_basic_properties_t *ret_properties, size_t *ret_size);

#endif

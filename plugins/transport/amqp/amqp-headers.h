/* SPDX-License-Identifier: Apache-2.0
 *
 * AMQP properties and header table of what was received, as headers of NServiceBus. Pure
 * functions; amqp-properties.h is the other way.
 *
 *   property         header                             when received
 *   message-id       the message's id                   else header NServiceBus.MessageId
 *   correlation-id   NServiceBus.CorrelationId          replaces the header
 *   reply-to         NServiceBus.ReplyToAddress         replaces the header
 *   content-type     NServiceBus.ContentType            replaces the header
 *   type             NServiceBus.EnclosedMessageTypes   only if the header is absent
 *   content-encoding Waybill.ContentEncoding            replaces the header
 *   app-id           Waybill.AppId                      replaces the header
 *   priority         Waybill.Priority, decimal          replaces the header
 *   timestamp        Waybill.Timestamp, decimal seconds replaces the header
 */
#ifndef WB_AMQP_HEADERS_H
#define WB_AMQP_HEADERS_H

#include <waybill/sys/transport.h>

#include "plugins/common/rabbitmq.h"

/** Of headers, and of bytes in their names and values together: the most, SIZE_MAX for any, or
 *  how many there are. */
typedef struct wb_amqp_limits {
    size_t count;
    size_t size;
} wb_amqp_limits;

/** The most that the headers of a message need. */
typedef struct wb_amqp_size {
    size_t header_count; /* of those that fit the limits */
    size_t text_size;    /* of their strings, with the id's */
} wb_amqp_size;

/** Measure what wb_amqp_headers_read() may write. */
wb_amqp_size wb_amqp_headers_measure(const amqp_basic_properties_t *properties,
                                     wb_amqp_limits limits);

/** Fill id, headers and header_count of `message`. `headers` and `text` have the
 *  measured sizes and become the message's. Values that are not strings are written
 *  as NServiceBus writes them; the broker's bookkeeping headers are left out. Headers that
 *  properties stand for always fit the limits; of the others the first ones do, and what is too
 *  large is left out. @return how many headers, of how many bytes, there are. */
wb_amqp_limits wb_amqp_headers_read(const amqp_basic_properties_t *properties,
                                    wb_amqp_limits limits, wb_incoming *message,
                                    wb_header *headers, char *text);

/** Say which limit the headers exceed of which so many were kept.
 *  @return the length of the text; 0, and nothing is written: they exceed none. */
size_t wb_amqp_headers_problem(wb_amqp_limits all, size_t kept, wb_amqp_limits limits,
                               char *buffer, size_t size);

/** How often the message was delivered before: what a quorum queue counted, and at
 *  least once when it was redelivered. The count is a header that a publisher can
 *  forge: without the flag, which is the broker's, it counts for nothing. */
uint32_t wb_amqp_delivery_count(const amqp_basic_properties_t *properties, int redelivered);

#endif

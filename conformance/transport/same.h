/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what arrived is what was sent.
 */
#ifndef WB_CONFORMANCE_TRANSPORT_SAME_H
#define WB_CONFORMANCE_TRANSPORT_SAME_H

#include "conformance/transport/steps.h"

int wb_tk_expect_bytes(wb_kit *kit, const char *what, const void *got, size_t got_size,
                       const void *sent, size_t sent_size);
/** Incoming strings are followed by a NUL byte; an outgoing size of 0 is up to it. */
void wb_tk_expect_string(wb_kit *kit, const char *what, const char *got, size_t got_size,
                         const char *sent, size_t sent_size);

/** Whether a header may have come although it was not sent: a broker may keep some headers as
 *  properties, and have a default for them; one without properties keeps the id as a header. */
int wb_tk_stands_for_a_property(const wb_header *header, const wb_operation *sent);

/** Name and value, of headers sent or received. */
int wb_tk_is_same_header(const wb_header *a, const wb_header *b);
/** No header came with a value that was not sent, or more often than it was sent.
 *  @return how many came of those sent. */
size_t wb_tk_expect_only_sent(wb_kit *kit, const wb_incoming *got, const wb_operation *sent);

/** A first delivery: id, headers, body, key. Headers come in their order with
 *  WB_CAP_HEADER_ORDER; without, each name comes with a value it was sent with. */
void wb_tk_expect_same(wb_kit *kit, const wb_incoming *got, const wb_operation *sent);
/** The headers of a later delivery: a broker that keeps a count among them may sort them. */
void wb_tk_expect_headers_again(wb_kit *kit, const wb_incoming *got, const wb_operation *sent);

#endif

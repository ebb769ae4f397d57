/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading incoming messages: headers by name. The types a message says it is are read by
 * wb_type_next(), which transports use too.
 */
#ifndef WB_MESSAGE_INCOMING_H
#define WB_MESSAGE_INCOMING_H

#include <waybill/sys/transport.h>
#include <waybill/sys/types.h>

/** The first header of that name, or NULL. */
const wb_header *wb_headers_find(const wb_header *headers, size_t count, const char *name,
                                 size_t name_size);

/** The same for a literal name: its size is known to the compiler. */
#define WB_HEADERS_FIND(headers, count, literal)                                                   \
    wb_headers_find((headers), (count), "" literal, sizeof(literal) - 1)

/** The first type that headers name (`text` is room for it), or NULL: they name none. */
const char *wb_headers_type(const wb_header *headers, size_t count, char text[WB_TYPE_SIZE]);

/** Whether a header is one of the platform's (NServiceBus.*, $.diagnostics.*, Waybill.*, those
 *  of a trace), not a user's. */
int wb_header_is_platforms(const wb_header *header);

#endif

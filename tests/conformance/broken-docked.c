/* SPDX-License-Identifier: Apache-2.0
 *
 * Has a counter of 16 bits for the size of headers: of more than 64 KiB it hands on what is in front of that.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++) {
        wb_incoming *message = (wb_incoming *)(uintptr_t)ret_messages[i];
        size_t kept = 0;
        for (size_t size = 0; kept < message->header_count; kept++) {
            size += message->headers[kept].name_size + message->headers[kept].value_size;
            if (size > UINT16_MAX)
                break;
        }
        message->header_count = kept;
    }
    return result;
}

BROKEN(docked, ops.receive = receive)

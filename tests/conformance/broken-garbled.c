/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises no order of headers; the value of an "a" becomes another.
 */
#include "config.h"

#include <string.h>

#include "tests/conformance/broken.h"

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++) {
        wb_header *headers = (wb_header *)(uintptr_t)ret_messages[i]->headers;
        for (size_t k = 0; k < ret_messages[i]->header_count; k++)
            if (strcmp(headers[k].name, "a") == 0)
                headers[k] = (wb_header){ "a", "9", 1, 1 };
    }
    return result;
}

BROKEN(garbled, descriptor.capabilities &= ~WB_CAP_HEADER_ORDER; ops.receive = receive)

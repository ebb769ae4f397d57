/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises no order of headers, and keeps none: they come backwards, of several of one name
 * the last alone. That is no fault.
 */
#include "config.h"

#include <string.h>

#include "tests/conformance/broken.h"

static size_t mix(wb_header *headers, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count / 2; i++) {
        const wb_header other = headers[i];
        headers[i] = headers[count - 1 - i];
        headers[count - 1 - i] = other;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < kept && strcmp(headers[at].name, headers[i].name) != 0)
            at++;
        if (at == kept)
            headers[kept++] = headers[i];
    }
    return kept;
}

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++) {
        wb_incoming *message = (wb_incoming *)(uintptr_t)ret_messages[i];
        message->header_count =
            mix((wb_header *)(uintptr_t)message->headers, message->header_count);
    }
    return result;
}

BROKEN(mixed, descriptor.capabilities &= ~WB_CAP_HEADER_ORDER; ops.receive = receive)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Loses the key of what it delivers again.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++) {
        wb_incoming *message = (wb_incoming *)(uintptr_t)ret_messages[i];
        if (message->delivery_count) {
            message->key = NULL;
            message->key_size = 0;
        }
    }
    return result;
}

BROKEN(amnesiac, ops.receive = receive)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares order per key, and loses the keys on the way.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++) {
        wb_incoming *message = (wb_incoming *)(uintptr_t)ret_messages[i];
        message->key = NULL;
        message->key_size = 0;
    }
    return result;
}

BROKEN(keyless, descriptor.capabilities |= WB_CAP_ORDER_PER_KEY; ops.receive = receive)

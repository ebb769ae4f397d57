/* SPDX-License-Identifier: Apache-2.0
 *
 * Says that it hands out first what comes back, and hands it out last.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    const int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    const wb_incoming *again[*ret_count + 1];
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < *ret_count; i++)
        if (ret_messages[i]->delivery_count)
            again[count++] = ret_messages[i];
        else
            ret_messages[kept++] = ret_messages[i];
    for (size_t i = 0; i < count; i++)
        ret_messages[kept++] = again[i];
    return result;
}

BROKEN(rearward, ops.receive = receive)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls a message sent that nobody can receive.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    int result = whole()->send(session, operations, count, deadline, error);
    for (size_t i = 0; i < count; i++)
        if (operations[i]->result == WB_REJECT && operations[i]->cause == WB_CAUSE_UNROUTABLE)
            operations[i]->result = WB_OK;
    return result;
}

BROKEN(loose, ops.send = send)

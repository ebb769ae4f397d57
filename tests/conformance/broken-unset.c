/* SPDX-License-Identifier: Apache-2.0
 *
 * Says nothing of the operations behind one that was refused.
 */
#include "config.h"

#include <stdlib.h>

#include "tests/conformance/broken.h"

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    int is_refused = 0;
    int32_t *before = calloc(count + 1, sizeof *before);
    if (!before)
        abort();
    for (size_t i = 0; i < count; i++)
        before[i] = operations[i]->result;
    int result = whole()->send(session, operations, count, deadline, error);
    for (size_t i = 0; i < count; i++) {
        if (is_refused)
            operations[i]->result = before[i];
        is_refused |= operations[i]->result == WB_REJECT;
    }
    free(before);
    return result;
}

BROKEN(unset, ops.send = send)

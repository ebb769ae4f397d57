/* SPDX-License-Identifier: Apache-2.0
 *
 * Refuses events after a subscriber has been removed: what led to it is still there.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int is_widowed;

static int count_types(void *count, const char *type)
{
    (void)type;
    ++*(int *)count;
    return WB_OK;
}

static int uninstall(wb_transport *transport, uint32_t flags, wb_error *error)
{
    int types = 0;
    int result = whole()->subscriptions(transport, count_types, &types, error);
    if (result == WB_OK)
        result = whole()->uninstall(transport, flags, error);
    is_widowed |= result == WB_OK && types;
    return result;
}

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    int result = whole()->send(session, operations, count, deadline, error);
    for (size_t i = 0; is_widowed && i < count; i++)
        if (operations[i]->kind == WB_OPERATION_PUBLISH) {
            operations[i]->result = WB_REJECT;
            operations[i]->cause = WB_CAUSE_UNROUTABLE;
            operations[i]->reason = "there is no such queue";
        }
    return result;
}

BROKEN(widowed, ops.uninstall = uninstall; ops.send = send)

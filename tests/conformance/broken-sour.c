/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes each delivery for the first, and the first receive of a process fails if what comes is not: that is what a
 * case that has failed left behind, and the one behind it had no part in it.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static wb_host some_host; /* a copy: instances come and go */
static int has_received;

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    some_host = *host;
    return whole()->create(host, endpoint, config, ret_transport, error);
}

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    const int is_first = !has_received && *ret_count;
    const int is_left_over = is_first && ret_messages[0]->delivery_count;
    has_received |= is_first;
    for (size_t i = 0; i < *ret_count; i++)
        ((wb_incoming *)(uintptr_t)ret_messages[i])->delivery_count = 0;
    if (!is_left_over)
        return result;
    (void)whole()->give_back(session, ret_messages, *ret_count, NULL);
    *ret_count = 0;
    return some_host.fail(&some_host, error, WB_RETRY, WB_CAUSE_OTHER, 0, "what was delivered before is not wanted");
}

BROKEN(sour, ops.create = create; ops.receive = receive)

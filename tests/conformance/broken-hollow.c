/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands on a message that is too large without its body.
 */
#include "config.h"

#include "tests/conformance/broken.h"

/* The kit makes an instance and then the session that receives. */
static int64_t latest_body_max;

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    latest_body_max = endpoint->body_max;
    return whole()->create(host, endpoint, config, ret_transport, error);
}

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++) {
        wb_incoming *message = (wb_incoming *)(uintptr_t)ret_messages[i];
        if ((int64_t)message->body_size <= latest_body_max)
            continue;
        message->body_size = 0;
        message->problem = "its body is too large";
    }
    return result;
}

BROKEN(hollow, ops.create = create; ops.receive = receive)

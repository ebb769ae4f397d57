/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes from a further queue what the queues before it leave room for.
 */
#include "config.h"

#include "plugins/transport/sqlite/transport.h"
#include "tests/conformance/broken.h"

static int receive(wb_transport_session *session, int64_t deadline, const wb_incoming **ret_messages, size_t max,
                   size_t *ret_count, wb_error *error)
{
    session->turn = 0;
    return whole()->receive(session, deadline, ret_messages, max, ret_count, error);
}

BROKEN(starving, ops.receive = receive)

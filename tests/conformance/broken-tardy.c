/* SPDX-License-Identifier: Apache-2.0
 *
 * Comes back two seconds after it should, if nothing came.
 */
#include "config.h"

#include <unistd.h>

#include "tests/conformance/broken.h"

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    if (result == WB_OK && *ret_count == 0)
        (void)sleep(2);
    return result;
}

BROKEN(tardy, ops.receive = receive)

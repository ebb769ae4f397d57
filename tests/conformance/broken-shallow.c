/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what waits in the queue of the endpoint's name, and nothing in its further ones.
 */
#include "config.h"

#include "plugins/transport/sqlite/transport.h"
#include "tests/conformance/broken.h"

static int depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error)
{
    wb_endpoint_info *told = (wb_endpoint_info *)(uintptr_t)transport->endpoint;
    const size_t count = told->queue_count;
    told->queue_count = 0;
    int result = whole()->depth(transport, depth, error);
    told->queue_count = count;
    return result;
}

BROKEN(shallow, ops.depth = depth)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Says that nothing waits, whatever does.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error)
{
    int result = whole()->depth(transport, depth, error);
    depth->messages = 0;
    return result;
}

BROKEN(blind, ops.depth = depth)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Receives from the queue of the endpoint's name and from no other.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    wb_endpoint_info *told = (wb_endpoint_info *)(uintptr_t)endpoint;
    told->queue_count = 0;
    return whole()->create(host, endpoint, config, ret_transport, error);
}

BROKEN(lone, ops.create = create)

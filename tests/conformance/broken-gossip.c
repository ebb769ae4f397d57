/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the host twice of each message that expired.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static void (*tell)(const wb_host *host, size_t count);

static void tell_twice(const wb_host *host, size_t count)
{
    tell(host, 2 * count);
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    wb_host *mine = (wb_host *)(uintptr_t)host;
    if (mine->expired != tell_twice)
        tell = mine->expired;
    mine->expired = tell_twice;
    return whole()->create(host, endpoint, config, ret_transport, error);
}

BROKEN(gossip, ops.create = create)

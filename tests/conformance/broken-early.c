/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares receive_only, and acknowledges when it hands out: what mode none does.
 */
#include "config.h"

#include <stdlib.h>

#include "tests/conformance/broken.h"

/* Instances of the kit are few; what they were told lives as long as the process. */
static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    static wb_endpoint_info *told[4096];
    static size_t count;
    wb_endpoint_info *changed = malloc(sizeof *changed);
    if (!changed || count == sizeof told / sizeof *told)
        abort();
    *changed = *endpoint;
    if (changed->mode == WB_MODE_RECEIVE_ONLY)
        changed->mode = WB_MODE_NONE;
    told[count++] = changed;
    return whole()->create(host, changed, config, ret_transport, error);
}

BROKEN(early, ops.create = create)

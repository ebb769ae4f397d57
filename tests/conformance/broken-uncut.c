/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands on all headers of a message, whatever the endpoint takes.
 */
#include "config.h"

#include <stdlib.h>

#include "tests/conformance/broken.h"

/* The whole one is told of no limits. Instances of the kit are few;
 * what they were told lives as long as the process. */
static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    static wb_endpoint_info *told[4096];
    static size_t count;
    wb_endpoint_info *changed = malloc(sizeof *changed);
    if (!changed || count == sizeof told / sizeof *told)
        abort();
    *changed = *endpoint;
    changed->headers_max = 0;
    changed->headers_size_max = 0;
    told[count++] = changed;
    return whole()->create(host, changed, config, ret_transport, error);
}

BROKEN(uncut, ops.create = create)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends the subscriptions first, and refuses to remove the queue then.
 */
#include "config.h"

#include <stdio.h>

#include "tests/conformance/broken.h"

static int keep_name(void *name, const char *type)
{
    (void)snprintf(name, 256, "%s", type);
    return WB_OK;
}

static int uninstall(wb_transport *transport, uint32_t flags, wb_error *error)
{
    char name[256] = "";
    const char *const types[] = { name };
    int result = whole()->subscriptions(transport, keep_name, name, error);
    if (result == WB_OK && *name)
        result = whole()->unsubscribe(transport, types, 1, error);
    return result == WB_OK ? whole()->uninstall(transport, flags, error) : result;
}

BROKEN(curt, ops.uninstall = uninstall)

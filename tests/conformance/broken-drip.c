/* SPDX-License-Identifier: Apache-2.0
 *
 * An open that fails leaves a descriptor open.
 */
#include "config.h"

#include <unistd.h>

#include "tests/conformance/broken.h"

static int open_session(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                        wb_transport_session **ret_session, wb_error *error)
{
    int result = whole()->open(transport, purpose, prefetch, ret_session, error);
    if (result != WB_OK)
        (void)dup(STDERR_FILENO);
    return result;
}

BROKEN(drip, ops.open = open_session)

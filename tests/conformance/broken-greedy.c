/* SPDX-License-Identifier: Apache-2.0
 *
 * Has a prefetch, and takes more at once than that.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int set_prefetch(wb_transport_session *session, uint32_t prefetch, wb_error *error)
{
    (void)session, (void)prefetch, (void)error;
    return WB_OK;
}

BROKEN(greedy, ops.set_prefetch = set_prefetch)

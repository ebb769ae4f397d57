/* SPDX-License-Identifier: Apache-2.0
 *
 * Goes on receiving although it was told to stop.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int stop_receiving(wb_transport_session *session, wb_error *error)
{
    (void)session, (void)error;
    return WB_OK;
}

BROKEN(deaf, ops.stop_receiving = stop_receiving; ops.struct_size = sizeof ops)

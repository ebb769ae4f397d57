/* SPDX-License-Identifier: Apache-2.0
 *
 * Says another delivery limit whenever it is asked.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int limits(wb_transport *transport, wb_transport_limits *limits, wb_error *error)
{
    static uint32_t asked;
    (void)transport, (void)error;
    limits->delivery_limit = 100 + asked++;
    return WB_OK;
}

BROKEN(fickle, ops.limits = limits; ops.struct_size = sizeof ops)

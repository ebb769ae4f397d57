/* SPDX-License-Identifier: Apache-2.0
 *
 * Its broker drops a message that comes back too often, and it counts no deliveries.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int limits(wb_transport *transport, wb_transport_limits *limits, wb_error *error)
{
    (void)transport, (void)error;
    limits->delivery_limit = 100;
    return WB_OK;
}

BROKEN(mute, ops.limits = limits; descriptor.capabilities &= ~WB_CAP_DELIVERY_COUNT)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Goes on being subscribed to what it was told to unsubscribe from.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int unsubscribe(wb_transport *transport, const char *const *types, size_t count, wb_error *error)
{
    (void)transport;
    (void)types;
    (void)count;
    (void)error;
    return WB_OK;
}

BROKEN(faithful, ops.unsubscribe = unsubscribe)

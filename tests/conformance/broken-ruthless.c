/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes a queue with what waits in it, whatever it was told.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int uninstall(wb_transport *transport, uint32_t flags, wb_error *error)
{
    return whole()->uninstall(transport, flags | WB_UNINSTALL_MESSAGES, error);
}

BROKEN(ruthless, ops.uninstall = uninstall)

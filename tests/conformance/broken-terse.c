/* SPDX-License-Identifier: Apache-2.0
 *
 * Says that something is missing, and not what.
 */
#include "config.h"

#include <string.h>

#include "core/base/error.h"
#include "tests/conformance/broken.h"

static int verify(wb_transport *transport, wb_error *error)
{
    int result = whole()->verify(transport, error);
    if (result != WB_OK)
        (void)strcpy(error->text, "a queue is missing: run waybill install");
    return result;
}

BROKEN(terse, ops.verify = verify)

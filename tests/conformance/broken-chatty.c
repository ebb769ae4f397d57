/* SPDX-License-Identifier: Apache-2.0
 *
 * Says what it does on standard output, where it stays in a buffer for a while.
 */
#include "config.h"

#include <stdio.h>

#include "tests/conformance/broken.h"

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                       wb_error *error)
{
    (void)printf("ok 1 - acknowledging %zu messages\nBail out!\n", count);
    return whole()->acknowledge(session, messages, count, error);
}

BROKEN(chatty, ops.acknowledge = acknowledge)

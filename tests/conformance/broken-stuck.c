/* SPDX-License-Identifier: Apache-2.0
 *
 * Never comes back when it is to give messages back.
 */
#include "config.h"

#include <unistd.h>

#include "tests/conformance/broken.h"

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                     wb_error *error)
{
    while (count)
        (void)pause();
    return whole()->give_back(session, messages, count, error);
}

BROKEN(stuck, ops.give_back = give_back)

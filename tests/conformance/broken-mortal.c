/* SPDX-License-Identifier: Apache-2.0
 *
 * Dies when it is to give messages back.
 */
#include "config.h"

#include <signal.h>

#include "tests/conformance/broken.h"

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                     wb_error *error)
{
    if (count)
        (void)raise(SIGSEGV);
    return whole()->give_back(session, messages, count, error);
}

BROKEN(mortal, ops.give_back = give_back)

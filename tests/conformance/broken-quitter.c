/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends the process when it is to give messages back, as if all were well.
 */
#include "config.h"

#include <stdlib.h>

#include "tests/conformance/broken.h"

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                     wb_error *error)
{
    if (count)
        exit(0);
    return whole()->give_back(session, messages, count, error);
}

BROKEN(quitter, ops.give_back = give_back)

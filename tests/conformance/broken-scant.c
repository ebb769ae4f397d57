/* SPDX-License-Identifier: Apache-2.0
 *
 * Has room for fifty messages in a call that settles: the rest stays in hand until the session ends.
 */
#include "config.h"

#include "tests/conformance/broken.h"

#define ROOM 50

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                       wb_error *error)
{
    return whole()->acknowledge(session, messages, count < ROOM ? count : ROOM, error);
}

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                     wb_error *error)
{
    return whole()->give_back(session, messages, count < ROOM ? count : ROOM, error);
}

BROKEN(scant, ops.acknowledge = acknowledge; ops.give_back = give_back)

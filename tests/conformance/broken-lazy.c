/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts off what is given back until the next call of the session that has to do with messages.
 */
#include "config.h"

#include <string.h>

#include "tests/conformance/broken.h"

#define PUT_OFF_MAX 1024

/* Of one session: in the kit no two give back at the same time. */
static wb_transport_session *idler;
static const wb_incoming *put_off[PUT_OFF_MAX];
static size_t put_off_count;

static int catch_up(wb_transport_session *session, wb_error *error)
{
    const size_t count = put_off_count;
    if (session != idler || !count)
        return WB_OK;
    put_off_count = 0;
    return whole()->give_back(session, put_off, count, error);
}

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                     wb_error *error)
{
    int result = catch_up(idler, error);
    if (result != WB_OK || count > PUT_OFF_MAX)
        return result == WB_OK ? whole()->give_back(session, messages, count, error) : result;
    memcpy((void *)put_off, (const void *)messages, count * sizeof *messages);
    put_off_count = count;
    idler = session;
    return WB_OK;
}

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = catch_up(session, error);
    return result == WB_OK ? whole()->receive(session, deadline, ret_messages, max, ret_count, error) : result;
}

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                       wb_error *error)
{
    int result = catch_up(session, error);
    return result == WB_OK ? whole()->acknowledge(session, messages, count, error) : result;
}

static void close_session(wb_transport_session *session)
{
    (void)catch_up(session, NULL);
    whole()->close(session);
}

BROKEN(lazy, ops.give_back = give_back; ops.receive = receive; ops.acknowledge = acknowledge;
       ops.close = close_session)

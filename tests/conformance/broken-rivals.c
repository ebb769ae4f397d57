/* SPDX-License-Identifier: Apache-2.0
 *
 * Has one place for a window in the whole process: who sends while another session does overwrites nothing, and
 * sends nothing either.
 */
#include "config.h"

#include <stdatomic.h>
#include <time.h>

#include "tests/conformance/broken.h"

static atomic_int sending;
static _Thread_local int is_inside; /* a transaction, which waits for others by itself */

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    const struct timespec a_moment = { 0, 2000000 };
    int result = WB_OK;
    if (is_inside)
        return whole()->send(session, operations, count, deadline, error);
    if (atomic_fetch_add(&sending, 1) == 0) {
        (void)nanosleep(&a_moment, NULL);
        result = whole()->send(session, operations, count, deadline, error);
    } else
        for (size_t i = 0; i < count; i++)
            operations[i]->result = WB_OK;
    (void)atomic_fetch_sub(&sending, 1);
    return result;
}

static int begin(wb_transport_session *session, wb_error *error)
{
    is_inside = 1;
    return whole()->begin(session, error);
}

static int commit(wb_transport_session *session, wb_error *error)
{
    is_inside = 0;
    return whole()->commit(session, error);
}

static int rollback(wb_transport_session *session, wb_error *error)
{
    is_inside = 0;
    return whole()->rollback(session, error);
}

static void close_session(wb_transport_session *session)
{
    is_inside = 0;
    whole()->close(session);
}

BROKEN(rivals, ops.send = send; ops.begin = begin; ops.commit = commit; ops.rollback = rollback;
       ops.close = close_session)

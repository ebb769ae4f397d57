/* SPDX-License-Identifier: Apache-2.0
 *
 * Commits what was sent, takes its time, and commits what was acknowledged.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "tests/conformance/broken.h"

#define PUT_OFF_MAX 1024

/* By thread: each has one transaction at a time. */
static _Thread_local wb_transport_session *inside;
static _Thread_local const wb_incoming *put_off[PUT_OFF_MAX];
static _Thread_local size_t put_off_count;

static int begin(wb_transport_session *session, wb_error *error)
{
    inside = session;
    put_off_count = 0;
    return whole()->begin(session, error);
}

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                       wb_error *error)
{
    if (session != inside || put_off_count + count > PUT_OFF_MAX)
        return whole()->acknowledge(session, messages, count, error);
    memcpy((void *)(put_off + put_off_count), (const void *)messages, count * sizeof *messages);
    put_off_count += count;
    return WB_OK;
}

static int commit(wb_transport_session *session, wb_error *error)
{
    const struct timespec a_moment = { 0, 50000000 };
    int result = whole()->commit(session, error);
    inside = NULL;
    if (result != WB_OK || !put_off_count)
        return result;
    (void)nanosleep(&a_moment, NULL);
    return whole()->acknowledge(session, put_off, put_off_count, error);
}

static int rollback(wb_transport_session *session, wb_error *error)
{
    inside = NULL;
    return whole()->rollback(session, error);
}

static void close_session(wb_transport_session *session)
{
    if (session == inside)
        inside = NULL;
    whole()->close(session);
}

BROKEN(halved, ops.begin = begin; ops.acknowledge = acknowledge; ops.commit = commit; ops.rollback = rollback;
       ops.close = close_session)

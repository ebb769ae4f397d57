/* SPDX-License-Identifier: Apache-2.0
 *
 * Its rollback undoes acknowledgements only: what was sent is sent.
 */
#include "config.h"

#include "tests/conformance/broken.h"

#define HELD_MAX 64

/* Acknowledged since begin(), in the transaction of this thread. */
static _Thread_local const wb_incoming *held[HELD_MAX];
static _Thread_local size_t held_count;
static _Thread_local int in_transaction;

static int begin(wb_transport_session *session, wb_error *error)
{
    int result = whole()->begin(session, error);
    in_transaction = result == WB_OK;
    held_count = 0;
    return result;
}

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                       size_t count, wb_error *error)
{
    if (!in_transaction || held_count + count > HELD_MAX)
        return whole()->acknowledge(session, messages, count, error);
    for (size_t i = 0; i < count; i++)
        held[held_count++] = messages[i];
    return WB_OK;
}

static int commit(wb_transport_session *session, wb_error *error)
{
    in_transaction = 0;
    int result = whole()->acknowledge(session, held, held_count, error);
    return result == WB_OK ? whole()->commit(session, error) : result;
}

static int rollback(wb_transport_session *session, wb_error *error)
{
    in_transaction = 0;
    return whole()->commit(session, error);
}

static void close_session(wb_transport_session *session)
{
    in_transaction = 0;
    whole()->close(session);
}

BROKEN(rollback, ops.begin = begin; ops.acknowledge = acknowledge; ops.commit = commit;
       ops.rollback = rollback; ops.close = close_session)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a copy of what is given back, and of what was sent and is rolled back.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/conformance/broken.h"

static _Thread_local size_t sent; /* bytes, since the transaction began */
static void *kept;                /* each begins with a pointer to the one before */

static void keep(size_t size)
{
    void **copy = malloc(sizeof *copy + size);
    if (!copy)
        abort();
    memset(copy, 'c', sizeof *copy + size);
    *copy = kept;
    kept = copy;
}

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                     wb_error *error)
{
    for (size_t i = 0; i < count; i++)
        keep(messages[i]->body_size);
    return whole()->give_back(session, messages, count, error);
}

static int begin(wb_transport_session *session, wb_error *error)
{
    sent = 0;
    return whole()->begin(session, error);
}

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    for (size_t i = 0; i < count; i++)
        sent += operations[i]->body_size;
    return whole()->send(session, operations, count, deadline, error);
}

static int rollback(wb_transport_session *session, wb_error *error)
{
    keep(sent);
    return whole()->rollback(session, error);
}

BROKEN(leaky, ops.give_back = give_back; ops.begin = begin; ops.send = send; ops.rollback = rollback)

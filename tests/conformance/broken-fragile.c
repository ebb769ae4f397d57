/* SPDX-License-Identifier: Apache-2.0
 *
 * A destination that is no UTF-8 ends its connection: what a broker does to whoever hands it on
 * without looking.
 */
#include "config.h"

#include <string.h>

#include "tests/conformance/broken.h"

#define SESSIONS_MAX 4096

/* Sessions that were broken; the kit opens few, and never two at one address at a time. */
static wb_transport_session *broken[SESSIONS_MAX];
static size_t broken_count;
static wb_host some_host; /* a copy: instances come and go */

static int is_broken(const wb_transport_session *session)
{
    for (size_t i = 0; i < broken_count; i++)
        if (broken[i] == session)
            return 1;
    return 0;
}

static int fail(wb_error *error)
{
    return some_host.fail(&some_host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                          "malformed UTF-8 in a name");
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    some_host = *host;
    return whole()->create(host, endpoint, config, ret_transport, error);
}

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    int is_bad = is_broken(session);
    for (size_t i = 0; i < count; i++)
        is_bad |= strchr(operations[i]->destination, '\xff') != NULL;
    if (!is_bad)
        return whole()->send(session, operations, count, deadline, error);
    if (!is_broken(session) && broken_count < SESSIONS_MAX)
        broken[broken_count++] = session;
    for (size_t i = 0; i < count; i++)
        operations[i]->result = WB_NOT_CONNECTED;
    return fail(error);
}

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    *ret_count = 0;
    return is_broken(session)
               ? fail(error)
               : whole()->receive(session, deadline, ret_messages, max, ret_count, error);
}

static void close_session(wb_transport_session *session)
{
    for (size_t i = 0; i < broken_count; i++)
        if (broken[i] == session)
            broken[i] = NULL;
    whole()->close(session);
}

BROKEN(fragile, ops.create = create; ops.send = send; ops.receive = receive;
       ops.close = close_session)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Empties the queue that it installs.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int empty(wb_transport_session *session, wb_error *error)
{
    const wb_incoming *messages[100];
    size_t count;
    int result;
    do {
        result = whole()->receive(session, 0, messages, 100, &count, error);
        if (result == WB_OK && count)
            result = whole()->acknowledge(session, messages, count, error);
    } while (result == WB_OK && count);
    return result;
}

static int install(wb_transport *transport, wb_error *error)
{
    wb_transport_session *session;
    int result = whole()->install(transport, error);
    if (result == WB_OK)
        result = whole()->open(transport, WB_SESSION_RECEIVE, 100, &session, error);
    if (result != WB_OK)
        return result;
    result = empty(session, error);
    whole()->close(session);
    return result;
}

BROKEN(tidy, ops.install = install)

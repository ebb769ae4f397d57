/* SPDX-License-Identifier: Apache-2.0
 *
 * Acknowledges the message of that number in the queue of the endpoint's name, whichever queue it came from.
 */
#include "config.h"

#include "plugins/transport/sqlite/transport.h"
#include "tests/conformance/broken.h"

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count, wb_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const wb_sqlite_message *message = (const wb_sqlite_message *)messages[i];
        if (message->claim)
            message->claim->source = &session->sources[0];
    }
    return whole()->acknowledge(session, messages, count, error);
}

BROKEN(crossed, ops.acknowledge = acknowledge)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits until its batch is full.
 */
#include "config.h"

#include "tests/conformance/broken.h"

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    size_t more = 1;
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    while (result == WB_OK && more && *ret_count && *ret_count < max) {
        result = whole()->receive(session, deadline, ret_messages + *ret_count, max - *ret_count,
                                  &more, error);
        *ret_count += more;
    }
    return result;
}

BROKEN(patient, ops.receive = receive)

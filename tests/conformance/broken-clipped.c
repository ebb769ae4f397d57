/* SPDX-License-Identifier: Apache-2.0
 *
 * Has a buffer of 32 MiB for a body, and hands on what fits.
 */
#include "config.h"

#include "tests/conformance/broken.h"

#define FITS ((size_t)32 << 20)

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++) {
        wb_incoming *message = (wb_incoming *)(uintptr_t)ret_messages[i];
        if (message->body_size > FITS)
            message->body_size = FITS;
    }
    return result;
}

BROKEN(clipped, ops.receive = receive)

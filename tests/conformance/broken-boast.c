/* SPDX-License-Identifier: Apache-2.0
 *
 * Says, by having no limits(), that no message is ever dropped, and drops those that were delivered six times.
 */
#include "config.h"

#include "tests/conformance/broken.h"

#define DELIVERIES_MAX 6

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    size_t kept = 0;
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; i < *ret_count; i++)
        if (ret_messages[i]->delivery_count < DELIVERIES_MAX)
            ret_messages[kept++] = ret_messages[i];
        else
            (void)whole()->acknowledge(session, &ret_messages[i], 1, error);
    *ret_count = kept;
    return result;
}

BROKEN(boast, ops.receive = receive)

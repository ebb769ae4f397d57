/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts names of queues to a hundred bytes.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/conformance/broken.h"

#define NAME_MAX_SIZE 100

/* Instances of the kit are few; their names live as long as the process. */
static const char *cut(const char *name)
{
    char *made = strndup(name, NAME_MAX_SIZE);
    if (!made)
        abort();
    return made;
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    ((wb_endpoint_info *)(uintptr_t)endpoint)->name = cut(endpoint->name);
    return whole()->create(host, endpoint, config, ret_transport, error);
}

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(operations[i]->destination) > NAME_MAX_SIZE)
            operations[i]->destination = cut(operations[i]->destination);
    return whole()->send(session, operations, count, deadline, error);
}

BROKEN(stunted, ops.create = create; ops.send = send)

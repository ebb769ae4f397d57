/* SPDX-License-Identifier: Apache-2.0
 *
 * Right in its own way: has room for few messages in hand and for short names only, opens no queue as an endpoint's
 * that was installed as an error or audit queue alone, and does not see all that expires.
 */
#include "config.h"

#include <string.h>

#include "core/base/error.h"
#include "tests/conformance/ahead.h"

#define NAME_MAX_SIZE 100

static void (*tell)(const wb_host *host, size_t count);
static const wb_transport *further; /* an instance for such a queue, until it is installed */

static void tell_half(const wb_host *host, size_t count)
{
    tell(host, count / 2);
}

static int refuse(wb_error *error, int cause, const char *text)
{
    error->result = WB_FATAL;
    error->cause = cause;
    (void)strcpy(error->text, text);
    return WB_FATAL;
}

static int is_further(const char *name)
{
    const size_t size = strlen(name);
    return size > 8 && (strcmp(name + size - 6, ".audit") == 0 || strcmp(name + size - 8, ".error.2") == 0);
}

static int (*ahead_create)(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                           wb_transport **ret_transport, wb_error *error);
static int (*ahead_open)(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                         wb_transport_session **ret_session, wb_error *error);

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    wb_host *mine = (wb_host *)(uintptr_t)host;
    if (strlen(endpoint->name) > NAME_MAX_SIZE)
        return refuse(error, WB_CAUSE_CONFIG, "names have at most 100 bytes");
    if (mine->expired != tell_half)
        tell = mine->expired;
    mine->expired = tell_half;
    int result = ahead_create(host, endpoint, config, ret_transport, error);
    if (result == WB_OK && is_further(endpoint->name))
        further = *ret_transport;
    return result;
}

static int install(wb_transport *transport, wb_error *error)
{
    int result = whole()->install(transport, error);
    if (result == WB_OK && transport == further)
        further = NULL;
    return result;
}

static int open_session(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                        wb_transport_session **ret_session, wb_error *error)
{
    if (transport == further)
        return refuse(error, WB_CAUSE_MISSING, "the queue is no endpoint's: run waybill install");
    return ahead_open(transport, purpose, prefetch, ret_session, error);
}

static void use(wb_transport_ops *ops)
{
    ahead_use(ops, AHEAD_HAS_LITTLE_ROOM);
    ahead_create = ops->create;
    ahead_open = ops->open;
    ops->create = create;
    ops->install = install;
    ops->open = open_session;
}

BROKEN(modest, use(&ops))

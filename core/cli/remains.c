/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/remains.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/cli/cli.h"

static void add(char text[CLI_REMAINS_SIZE], uint64_t count, const char *one, const char *several)
{
    const size_t used = strlen(text);
    if (count)
        (void)snprintf(text + used, CLI_REMAINS_SIZE - used, "%s%" PRIu64 " %s", used ? ", " : "", count,
                       count == 1 ? one : several);
}

const char *cli_remains_text(const wb_remains *remains, char text[CLI_REMAINS_SIZE])
{
    text[0] = '\0';
    add(text, remains->queue.messages, "message waits in its queue", "messages wait in its queue");
    add(text, remains->pending, "row of operations is pending", "rows of operations are pending");
    add(text, remains->delayed, "message is delayed", "messages are delayed");
    add(text, remains->written, "message written in SQL waits", "messages written in SQL wait");
    add(text, remains->failed, "failed message is unresolved",
        remains->failed < WB_REMAINS_FAILED_MAX ? "failed messages are unresolved" : "or more failed messages are unresolved");
    return *text ? text : "nothing waits";
}

static int refuse_readers(const char *endpoint, const wb_remains *remains)
{
    const uint32_t readers = remains->queue.readers;
    const char *receive = readers == 1 ? "session receives" : "sessions receive";
    if (remains->error_queue)
        return cli_fail(EX_TEMPFAIL, "endpoint \"%s\": %" PRIu32 " %s from queue \"%s\": stop its instances, and whoever else "
                                     "reads that", endpoint, readers, receive, remains->error_queue);
    return cli_fail(EX_TEMPFAIL, "endpoint \"%s\": %" PRIu32 " %s from its queue: stop its instances", endpoint, readers,
                    receive);
}

int cli_remains_refuse(const char *endpoint, const wb_remains *remains, const char *loss)
{
    char text[CLI_REMAINS_SIZE];
    if (remains->queue.readers)
        return refuse_readers(endpoint, remains);
    return cli_fail(EX_TEMPFAIL, "endpoint \"%s\": %s: let it run until all is done%s; --force %s", endpoint,
                    cli_remains_text(remains, text),
                    remains->failed ? ", and retry, archive or discard what failed (waybill failures)" : "", loss);
}

int cli_remains_check(const wb_endpoint_setup *setup)
{
    char lacks[128];
    if (!wb_removal_lacks(setup, lacks, sizeof lacks))
        return EX_OK;
    return cli_fail(EX_UNAVAILABLE, "endpoint \"%s\": its %s cannot remove what it made: do it by hand",
                    setup->config->name, lacks);
}

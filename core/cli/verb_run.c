/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <malloc.h>
#include <stdlib.h>
#include <sysexits.h>

#include "core/cli/cli.h"
#include "core/cli/host.h"
#include "core/cli/streams.h"

#define INSTALL CLI_LONG_OPTION(1)
#define DRAIN CLI_LONG_OPTION(2)
#define IDLE CLI_LONG_OPTION(3)
/* A month. */
#define LONGEST_PATIENCE 2678400

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "this endpoint only" },
    { INSTALL, "install", NULL, "make queues and tables first, as waybill install does" },
    { DRAIN, "drain", NULL, "handle until nothing is left to do, then end with 0" },
    { IDLE, "idle", "SECONDS", "1 to 3600: how long nothing must have come for that; default: 5" },
    { 'p', "patience", "SECONDS", "end with 75 when it takes longer; default: it may take for ever" },
    CLI_OPTION_END,
};

/* A batch's buffers are of some 100 KB and come again with each batch: by default the C library
 * gives such memory back each time, and the kernel clears its pages anew. */
static void keep_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
}

/* @return -1 to go on, otherwise the exit code. */
static int read_seconds(const char *option, const char *text, long most, int64_t *ret_time)
{
    char *end = NULL;
    if (!text)
        return -1;
    long seconds = strtol(text, &end, 10);
    if (end == text || *end || seconds < 1 || seconds > most)
        return cli_fail(EX_USAGE, "%s \"%s\" is not 1 to %ld seconds", option, text, most);
    *ret_time = seconds * WB_SECOND;
    return -1;
}

static int read_drain(const cli_values *values, cli_drain *drain)
{
    int code;
    if (!values->value[DRAIN])
        return values->value[IDLE] || values->value['p'] ? cli_fail(EX_USAGE, "--idle and --patience go with --drain") : -1;
    drain->idle = CLI_DRAIN_IDLE;
    if ((code = read_seconds("--idle", values->value[IDLE], 3600, &drain->idle)) >= 0)
        return code;
    return read_seconds("--patience", values->value['p'], LONGEST_PATIENCE, &drain->patience);
}

static int run(const cli_values *values)
{
    cli_host host = { 0 };
    wb_setup *setup = NULL;

    int code = read_drain(values, &host.drain);
    if (code >= 0)
        return code;
    keep_memory();
    cli_streams_keep();
    cli_guard_block(&host.guard);
    code = cli_load(values, 0, &setup);
    if (code != EX_OK)
        return code;
    code = cli_host_run(&host, setup, values->value['e'], values->value[INSTALL] != NULL);
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_run = {
    .name = "run",
    .summary = "run the endpoints until SIGTERM or SIGINT",
    .help = "Finishes what is in flight when told to stop; a second signal, or shutdown_timeout, ends\n"
            "it at once (exit code 75). Endpoints wait for servers that go away while they run; one\n"
            "that is not there at the start is an error, or waited for (start). An endpoint that gives up is started again\n"
            "after a pause (on_endpoint_failure); the exit code tells if it still does not run at the\n"
            "end. A handler beyond handler_timeout ends the program with 70.\n"
            "With --drain it ends by itself once nothing is left: no message has come for a while, no operation\n"
            "is pending, no delayed message waits in a store, and none that was written in SQL. Subscriptions stay as they are.\n"
            "SIGHUP reads log_level, log_file and log_format again and opens the log file anew; SIGUSR1 has counters logged.",
    .options = options,
    .run = run,
};

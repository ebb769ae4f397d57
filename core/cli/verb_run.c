/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <malloc.h>
#include <signal.h>
#include <sysexits.h>

#include "core/cli/cli.h"
#include "core/cli/host.h"
#include "core/cli/streams.h"

#define INSTALL CLI_LONG_OPTION(1)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "this endpoint only" },
    { INSTALL, "install", NULL, "make queues and tables first, as waybill install does" },
    CLI_OPTION_END,
};

/* A batch's buffers are of some 100 KB and come again with each batch: by default the C library
 * gives such memory back each time, and the kernel clears its pages anew. */
static void keep_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
}

static int run(const cli_values *values)
{
    cli_host host = { 0 };
    wb_setup *setup = NULL;

    keep_memory();
    cli_streams_keep();
    cli_guard_block(&host.guard);
    signal(SIGPIPE, SIG_IGN);
    int code = cli_load(values, 0, &setup);
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
            "end.",
    .options = options,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * The host: runs the endpoints of a file beside each other, from create to destroy.
 *
 * An error before all of them run ends them all. Later each is on its own: where workers give
 * up, what `on_endpoint_failure` says is done with that endpoint (restart.h has the pauses), and
 * the others go on. It ends when it is told to, or when every endpoint has ended for good.
 *
 * Main thread only.
 */
#ifndef WB_CLI_HOST_H
#define WB_CLI_HOST_H

#include "core/cli/guard.h"
#include "core/endpoint/endpoint.h"
#include "core/endpoint/restart.h"
#include "core/endpoint/trial.h"

typedef struct cli_hosted {
    const wb_endpoint_setup *setup;
    wb_endpoint *endpoint; /* NULL: not made yet */
    wb_restart restart;
    wb_trial *trial;   /* of whether it can start again; NULL: none */
    int is_ended;      /* for good, told to stop by us; its neighbours go on */
    wb_error failure;  /* why it gave up; result is WB_OK while all is well */
    int64_t failed_at; /* when it did first, since all was well */
    int64_t deadline;  /* of its own shutdown_timeout */
} cli_hosted;

typedef struct cli_host {
    cli_hosted *hosted;
    size_t count;
    cli_guard guard;
    int has_guard;
} cli_host;

/** Run all endpoints of a setup, or the one named; `install` first makes what they need. The
 *  guard's signals are blocked.
 *  @return the exit code: 0, or that of the first failure that was not made good. Does not
 *  return when the time to stop is over (guard.h). */
int cli_host_run(cli_host *host, const wb_setup *setup, const char *name, int install);

#endif

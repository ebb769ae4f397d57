/* SPDX-License-Identifier: Apache-2.0
 *
 * The host: runs the endpoints of a file beside each other, from create to destroy.
 *
 * What `waybill check` would say is said first, all of it. An error before all of them run ends them all, once each was tried and has said what is
 * wrong with it, but for servers that are not there where the
 * endpoint waits for them (wait.h). Later each is on its own: where workers give
 * up, what `on_endpoint_failure` says is done with that endpoint (restart.h has the pauses), and
 * the others go on. It ends when it is told to, when every endpoint has ended for good, when there is nothing left to do
 * and it was asked for that (drain.h), or for a handler that does not return (overdue.h).
 *
 * Main thread only.
 */
#ifndef WB_CLI_HOST_H
#define WB_CLI_HOST_H

#include "core/cli/drain.h"
#include "core/cli/counts.h"
#include "core/cli/guard.h"
#include "core/cli/hosted.h"
#include "core/cli/logging.h"
#include "core/cli/pulse.h"
#include "core/cli/watch.h"

typedef struct cli_host {
    cli_hosted *hosted;
    size_t count;
    cli_guard guard;
    int has_guard;
    cli_pulse pulse;
    cli_logging logging;
    cli_counts counts;
    cli_watch watch;
    int is_asking; /* a thread of it, for longer than it is waited for */
    int install;
    int64_t trials_deadline; /* of a stop: so long trials are waited for */
    cli_drain drain; /* idle and patience are the caller's */
} cli_host;

/** Run all endpoints of a setup, or the one named; `install` first makes what they need. The
 *  guard's signals are blocked.
 *  @return the exit code: 0, or that of the first failure that was not made good. Does not
 *  return when the time to stop is over (guard.h). */
int cli_host_run(cli_host *host, wb_setup *setup, const char *name, int install);

#endif

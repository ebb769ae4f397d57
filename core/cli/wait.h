/* SPDX-License-Identifier: Apache-2.0
 *
 * An endpoint with start = "wait": it is tried beside the running program until its servers are
 * there, with pauses that grow; then its modules are opened, and it is ready to be started. A module that
 * does not open yet is waited for as a server is: all of it is tried again.
 *
 * What waiting does not cure ends the wait. But a server that has just come may not know yet what
 * it has (a broker still recovers its queues): after a wait that is believed only when it stays so.
 *
 * Main thread only.
 */
#ifndef WB_CLI_WAIT_H
#define WB_CLI_WAIT_H

#include "core/cli/hosted.h"

#define CLI_WAIT_PAUSE_MIN WB_SECOND
#define CLI_WAIT_PAUSE_MAX (30 * WB_SECOND)
/** How long it must stay so, after a wait, until it is believed. */
#define CLI_WAIT_DOUBT (10 * WB_SECOND)

/** Whether it is to wait, and does not run yet. */
int cli_wait_is_on(const cli_hosted *one);
/** Begin the first trial, or the next one when it is due, and look what became of the last.
 *  @return WB_OK: it waits, or its endpoint is there (one->endpoint), verified, with its modules open and not
 *  started; else what waiting does not cure. */
int cli_wait_look(cli_hosted *one, int install, int64_t now, wb_error *error);

#endif

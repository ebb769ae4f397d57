/* SPDX-License-Identifier: Apache-2.0
 *
 * The console of the running program, where the configuration has a group `console`: put together here of the page, the last hour,
 * what was negotiated, and a desk that asks the endpoints' databases.
 *
 * Main thread only.
 */
#ifndef WB_CLI_CONSOLE_H
#define WB_CLI_CONSOLE_H

#include "core/cli/asked.h"
#include "core/console/console.h"

typedef struct cli_console {
    wb_console console;
    cli_asked *asked;
} cli_console;

/** @return NULL: there is no thread to be had. */
cli_console *cli_console_make(const wb_console_config *config, const cli_hosted *hosted, size_t count);
/** The listener has ended. @return 0: the desk's thread waits for a server, and goes on to use all there is. NULL is allowed. */
int cli_console_free(cli_console *console);

#endif

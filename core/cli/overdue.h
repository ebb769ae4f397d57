/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler beyond its endpoint's handler_timeout: the process ends with 70. Nothing takes a thread back that hangs;
 * whoever looks after the program starts it again, and the message comes again.
 *
 * What others have in hand is finished first: it would come again, too, and each time counts.
 *
 * Main thread only.
 */
#ifndef WB_CLI_OVERDUE_H
#define WB_CLI_OVERDUE_H

#include "core/cli/guard.h"
#include "core/cli/hosted.h"

/** So long others have for what they have in hand. */
#define CLI_OVERDUE_GRACE (2 * WB_SECOND)

/** Whether there is such a handler; wb_endpoint_look() has named its message. */
int cli_overdue_is_there(const cli_hosted *hosted, size_t count);
/** End the process for it. */
_Noreturn void cli_overdue_end(const cli_hosted *hosted, size_t count, cli_guard *guard);

#endif

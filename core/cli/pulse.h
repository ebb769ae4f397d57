/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's pulse: how its endpoints are, told to the service manager (notify.h). READY once,
 * STATUS when it changes, STOPPING, and WATCHDOG as long as every worker makes progress.
 *
 * Main thread only.
 */
#ifndef WB_CLI_PULSE_H
#define WB_CLI_PULSE_H

#include "core/cli/hosted.h"
#include "core/cli/notify.h"

typedef struct cli_pulse {
    cli_notify notify;
    char status[600]; /* as told last */
    int is_stopping;  /* it was told */
    int64_t fed;      /* when the watchdog was */
} cli_pulse;

void cli_pulse_begin(cli_pulse *pulse);
void cli_pulse_end(cli_pulse *pulse);
/** Every endpoint runs or waits for its servers. */
void cli_pulse_ready(cli_pulse *pulse);
/** How one is, WB_HEALTH_x, and why: *ret_reason (NULL: it runs as it should) may point into the facts, which are filled,
 *  or into the endpoint. */
int cli_pulse_judge(const cli_hosted *one, int is_stopping, wb_health_facts *facts, const char **ret_reason);
/** Look at the endpoints, some ten times a second, and tell what is due at this time (monotonic). */
void cli_pulse_look(cli_pulse *pulse, const cli_hosted *hosted, size_t count, int is_stopping, int64_t now);

#endif

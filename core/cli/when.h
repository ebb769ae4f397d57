/* SPDX-License-Identifier: Apache-2.0
 *
 * A time on the command line: --delay or --at.
 */
#ifndef WB_CLI_WHEN_H
#define WB_CLI_WHEN_H

#include <stdint.h>

/** As in wb_outgoing: one of them is 0, both where neither was given. */
typedef struct cli_when {
    int64_t delay;
    int64_t at;
} cli_when;

/** Read what was given for the two options, or NULL. @return EX_OK, or EX_USAGE and it was said why. */
int cli_read_when(const char *delay, const char *at, cli_when *ret_when);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A time on the command line (--delay or --at), and how long something is in words.
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

#define CLI_SPAN_SIZE 32
/** How long that is, not negative, in the largest unit that tells it: "5 min", "3 h". @return text. */
const char *cli_format_span(int64_t span, char text[CLI_SPAN_SIZE]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a connection, a client, or a session is of no more use. Kept with it, because the thread that
 * finds out may have nobody to tell.
 */
#ifndef WB_COMMON_FAILURE_H
#define WB_COMMON_FAILURE_H

#include <stdint.h>
#include <waybill/sys/plugin.h>

/** All zero: nothing happened. */
typedef struct wb_common_failure {
    int result; /* WB_x; WB_OK when nothing failed */
    int cause;  /* WB_CAUSE_x */
    int64_t code;
    char text[480];
} wb_common_failure;

/** Fill `failure`, whatever is there. @return `result`. */
int wb_common_failure_set(wb_common_failure *failure, int result, int cause, int64_t code,
                          const char *format, ...) WB_PRINTF(5, 6);
/** Fill it, unless it is filled: the first reason is the one. @return its result. */
int wb_common_failure_note(wb_common_failure *failure, int result, int cause, int64_t code,
                           const char *format, ...) WB_PRINTF(5, 6);
/** Tell the host. @return failure->result. */
int wb_common_failure_report(const wb_host *host, const wb_common_failure *failure,
                             wb_error *error);

#endif

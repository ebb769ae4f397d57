/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems: everything that is wrong with a configuration, collected in one run.
 *
 * Each problem is one line that starts with the place it is about:
 *
 *   /etc/waybill.conf:7: endpoint "orders": option "batch_time" = "5x" is not a duration ...
 *
 * What a terminal would obey is escaped (base/printable.h), so that a value cannot forge a
 * line. A secret's value is never part of a problem: callers pass "(hidden)".
 */
#ifndef WB_CONFIG_PROBLEMS_H
#define WB_CONFIG_PROBLEMS_H

#include <stdio.h>
#include <waybill/sys/plugin.h>

/** A place in a configuration file. */
typedef struct wb_conf_origin {
    const char *file; /* owned by the tree it comes from; NULL: no place in particular */
    int line;         /* from 1; 0: the file as a whole */
    int is_set;       /* 1: a setting stands there, and is valid; 0: a default applies, this is its group */
} wb_conf_origin;

typedef struct wb_problem {
    int level;  /* WB_LOG_ERROR or WB_LOG_WARNING */
    char *text; /* "file:line: what is wrong" */
} wb_problem;

typedef struct wb_problems {
    wb_problem *items;
    size_t count;
    size_t capacity;
    size_t error_count; /* of them errors */
} wb_problems; /* all zero is empty */

void wb_problems_add(wb_problems *problems, int level, wb_conf_origin at, const char *format, ...)
    WB_PRINTF(4, 5);

/** One line each: errors as they are, warnings with "warning: " after the place. */
void wb_problems_print(const wb_problems *problems, FILE *stream);

void wb_problems_free(wb_problems *problems);

#endif

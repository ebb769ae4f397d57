/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runner tells the process that prints. Each report is a packet: it is there whole or
 * not at all, whoever dies, and those of two threads do not mix.
 */
#ifndef WB_CONFORMANCE_REPORT_H
#define WB_CONFORMANCE_REPORT_H

#include <stddef.h>
#include <stdint.h>

typedef enum wb_report_kind {
    WB_REPORT_UNABLE,  /* the text says why no case can be tried; the runner ends */
    WB_REPORT_BEGINS,  /* the case of that place in the book */
    WB_REPORT_NOTE,    /* a line */
    WB_REPORT_CLOSING, /* the case is over, what cases share is closed with the next verdict */
    WB_REPORT_PASSED,
    WB_REPORT_SKIPPED, /* the text says why */
    WB_REPORT_FAILED,
} wb_report_kind;

#define WB_REPORT_TEXT 4000

typedef struct wb_report {
    wb_report_kind kind;
    int is_last; /* of a verdict: the runner ends with it */
    size_t place;
    char text[WB_REPORT_TEXT]; /* with its NUL byte */
} wb_report;

/** A way for reports, from `ends[1]` to `ends[0]`. @return 0 or -1. */
int wb_report_open(int ends[2]);

/** Send one; `text` may be NULL and is cut. Ends the process where nobody listens any more. */
void wb_report_send(int reporting, wb_report_kind kind, size_t place, int is_last, const char *text);

/** Take the next one, which is there. @return 0: there is none (any more). */
int wb_report_take(int reports, wb_report *ret_report);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings: what would bite, of all endpoints that were looked at, in the order in which it was found.
 */
#ifndef WB_DOCTOR_FINDINGS_H
#define WB_DOCTOR_FINDINGS_H

#include <stddef.h>
#include <waybill/sys/plugin.h>

#define WB_FINDING_UNSEEN 4 /* the host's own: nothing is known, since it could not be looked at */

/** Where something was found. Kept, not copied: the names are the configuration's, or static. */
typedef struct wb_finding_place {
    const char *endpoint; /* NULL: the configuration as a whole */
    const char *part;     /* "transport", "persistence", "deduplication store", "configuration" */
    const char *plugin;   /* NULL: none is concerned */
} wb_finding_place;

typedef struct wb_finding_kept {
    wb_finding_place at;
    int severity; /* WB_FINDING_x */
    char *name;
    char *text;
    char *remedy; /* NULL: the text says it, or nothing is to be done */
} wb_finding_kept;

typedef struct wb_findings {
    wb_finding_kept *items;
    size_t count;
    size_t capacity;
    size_t biting; /* of them warnings and dangers */
    size_t unseen; /* of them what could not be looked at */
} wb_findings; /* all zero is empty */

/** Add one; all texts are copied. A severity that is none is a warning. `remedy` may be NULL. Any thread; who reads them
 *  has seen to it that none is left that adds. */
void wb_findings_add(wb_findings *findings, const wb_finding_place *at, int severity, const char *name, const char *remedy,
                     const char *format, ...) WB_PRINTF(6, 7);

/** Add what could not be looked at, and why. Any thread, as above. */
void wb_findings_add_unseen(wb_findings *findings, const wb_finding_place *at, const char *name, const char *why);

/** "note", "warning", "danger", "unseen". */
const char *wb_finding_severity_name(int severity);

void wb_findings_free(wb_findings *findings);

#endif

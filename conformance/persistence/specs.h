/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs: two sessions as lists of steps, run in every order in which their steps can be
 * interleaved. Whatever the order, and whoever had to wait, the same invariants hold
 * afterwards; no order has an expected outcome of its own, so that a database with one writer
 * passes as well as one with row locks.
 *
 *   specs.c     the specs, as data
 *   schedule.c  all interleavings of a spec; two threads, of which each may wait
 *   ledger.c    what was done and answered, and whether it fits together
 */
#ifndef WB_CONFORMANCE_SPECS_H
#define WB_CONFORMANCE_SPECS_H

#include "conformance/persistence/persistence.h"

typedef enum wb_step_kind {
    WB_STEP_NONE, /* the end of a list */
    WB_STEP_BEGIN,
    WB_STEP_COMMIT, /* with operations */
    WB_STEP_ROLLBACK,
    WB_STEP_MARK,
    WB_STEP_SWEEP,
    WB_STEP_CLEAN_UP,
} wb_step_kind;

#define WB_STEPS_MAX 6
#define WB_STEP_IDS_MAX 4
/* Batches 1 to 9, and ids of one letter. */
#define WB_STEP_BATCHES 10

typedef struct wb_step {
    wb_step_kind kind;
    unsigned batch;
    /** One letter an id, ascending. BEGIN: what is claimed. COMMIT: what is given back, of
     *  what was ours. */
    const char *ids;
} wb_step;

typedef struct wb_spec {
    wb_step before[WB_STEPS_MAX]; /* in order, by one session alone */
    wb_step steps[2][WB_STEPS_MAX];
} wb_spec;

/* ---- what happened --------------------------------------------------------------------- */

typedef struct wb_event {
    const wb_step *step;
    unsigned session;
    /** When it was called and when it had returned: numbers of one sequence. */
    uint64_t started, ended;
    int result;
    size_t claim_count;
    wb_claim claims[WB_STEP_IDS_MAX];
    size_t visited_count;
    uint64_t visited[WB_STEP_BATCHES];
} wb_event;

typedef struct wb_ledger {
    wb_event events[3 * WB_STEPS_MAX];
    size_t count;
} wb_ledger;

/** Whether what was answered and what a new look finds fit together; notes what does not. */
int wb_ledger_check(const wb_ledger *ledger, wb_client *look);

/** "begin 1 ab", for people. */
void wb_step_describe(const wb_step *step, char *text, size_t size);
size_t wb_steps_count(const wb_step *steps);

/** Run a spec in all its interleavings; ends with the first that fails. */
void wb_spec_run(wb_kit *kit, const wb_spec *spec);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: what may happen at once, as specs.
 */
#include "config.h"

#include "conformance/persistence/specs.h"

#define BEGIN(batch, ids) { WB_STEP_BEGIN, batch, ids }
#define COMMIT(batch) { WB_STEP_COMMIT, batch, "" }
#define COMMIT_RELEASING(batch, ids) { WB_STEP_COMMIT, batch, ids }
#define ROLLBACK(batch) { WB_STEP_ROLLBACK, batch, "" }
#define MARK(batch) { WB_STEP_MARK, batch, "" }
#define SWEEP { WB_STEP_SWEEP, 0, "" }
#define CLEAN_UP { WB_STEP_CLEAN_UP, 0, "" }
#define STORED(batch, ids) BEGIN(batch, ids), COMMIT(batch)

#define SPEC(function, ...)                                                                        \
    static void function(wb_kit *kit)                                                              \
    {                                                                                              \
        static const wb_spec spec = { __VA_ARGS__ };                                               \
        wb_spec_run(kit, &spec);                                                                   \
    }

SPEC(same_ids, .steps = { { BEGIN(1, "ab"), COMMIT(1) },
                          { BEGIN(2, "ab"), COMMIT(2) } })
SPEC(shared_id, .steps = { { BEGIN(1, "ab"), COMMIT(1) },
                           { BEGIN(2, "bc"), COMMIT(2) } })
SPEC(rolled_back, .steps = { { BEGIN(1, "a"), ROLLBACK(1), BEGIN(3, "a"), COMMIT(3) },
                             { BEGIN(2, "a"), COMMIT(2) } })
SPEC(given_back, .steps = { { BEGIN(1, "ab"), COMMIT_RELEASING(1, "b") },
                            { BEGIN(2, "ab"), COMMIT_RELEASING(2, "a") } })
SPEC(duplicate_and_mark, .before = { STORED(1, "a") },
                         .steps = { { BEGIN(2, "ab"), COMMIT(2) },
                                    { MARK(1), MARK(2) } })
SPEC(commit_and_mark, .steps = { { BEGIN(1, "a"), COMMIT(1), MARK(1) },
                                 { MARK(1), MARK(1) } })
SPEC(marks_and_sweeps, .before = { STORED(1, "a"), STORED(2, "b") },
                       .steps = { { MARK(1), MARK(2) },
                                  { SWEEP, SWEEP } })
SPEC(commit_and_sweeps, .steps = { { BEGIN(1, "a"), COMMIT(1), MARK(1) },
                                   { SWEEP, SWEEP } })
SPEC(two_sweeps, .before = { STORED(1, "a"), STORED(2, "b") },
                 .steps = { { SWEEP, MARK(1) },
                            { SWEEP, MARK(2) } })
SPEC(claim_and_clean_up, .before = { STORED(1, "a"), MARK(1) },
                         .steps = { { BEGIN(2, "ab"), COMMIT(2) },
                                    { CLEAN_UP, CLEAN_UP } })
SPEC(marks_and_clean_ups, .before = { STORED(1, "a"), STORED(2, "b") },
                          .steps = { { MARK(1), MARK(2) },
                                     { CLEAN_UP, CLEAN_UP } })
SPEC(commit_and_clean_up, .steps = { { BEGIN(1, "a"), COMMIT(1), MARK(1) },
                                     { CLEAN_UP, BEGIN(2, "a"), COMMIT(2) } })
SPEC(two_clean_ups, .before = { STORED(1, "a"), STORED(2, "b"), MARK(1) },
                    .steps = { { CLEAN_UP, MARK(2) },
                               { CLEAN_UP, CLEAN_UP } })

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "interleaved: two batches claim the same ids and commit", OUTBOX, same_ids },
    { "interleaved: two batches share one id of three", OUTBOX, shared_id },
    { "interleaved: a claim against a rollback and a second try", OUTBOX, rolled_back },
    { "interleaved: claims against claims that are given back", OUTBOX, given_back },
    { "interleaved: a duplicate against the mark of its batch", OUTBOX, duplicate_and_mark },
    { "interleaved: a commit against its mark", OUTBOX, commit_and_mark },
    { "interleaved: marks against sweeps", OUTBOX, marks_and_sweeps },
    { "interleaved: a commit and its mark against sweeps", OUTBOX, commit_and_sweeps },
    { "interleaved: two sweeps and their marks", OUTBOX, two_sweeps },
    { "interleaved: a claim against the clean-up of its record", OUTBOX, claim_and_clean_up },
    { "interleaved: marks against clean-ups", OUTBOX, marks_and_clean_ups },
    { "interleaved: a commit and its mark against a clean-up and a duplicate", OUTBOX,
      commit_and_clean_up },
    { "interleaved: two clean-ups and a mark", OUTBOX, two_clean_ups },
};
const wb_kit_group wb_cases_specs = WB_KIT_GROUP(cases);

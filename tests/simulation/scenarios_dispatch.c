/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of what leaves: transport transactions, moves to the error queue, nacks, ids, poison
 * operations.
 */
#include "config.h"

#include <stddef.h>
#include <waybill/sys/plugin.h>

#include "tests/simulation/audit.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/database.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/population.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* ---- transport transactions ---- */

static void prepare_refused_in_transaction(int mode)
{
    sim_shape_plain(mode, 0);
    sim_scene_add(1, SIM_NO_HANDLER);
    sim_scene_add(1, SIM_DEFERRED);
    sim_scene_add(4, SIM_GOOD);
    sim_scene_add(1, SIM_NO_HANDLER);
    sim_scene_add(1, SIM_BREAKS);
    sim_scene_add(4, SIM_GOOD);
}

static void prepare_refused_atomic(void)
{
    prepare_refused_in_transaction(WB_MODE_SENDS_ATOMIC);
}

static void prepare_refused_scope(void)
{
    prepare_refused_in_transaction(WB_MODE_TRANSACTION_SCOPE);
}

/* ---- unmovable ---- */

static void prepare_unmovable(int mode, int outbox)
{
    sim_shape_plain(mode, outbox);
    the_shape.error_size_max = 6000;
    the_shape.workers = 2;
    sim_scene_add(2, SIM_UNMOVABLE);
    sim_scene_add(2, SIM_BULKY);
    sim_scene_add(1, SIM_LARGE_HEADERS);
    sim_scene_add(1, SIM_MANY_HEADERS);
    sim_scene_add(10, SIM_GOOD);
    sim_scene_add(1, SIM_UNMOVABLE);
    sim_scene_add(10, SIM_GOOD);
}

static void prepare_unmovable_outbox(void)
{
    prepare_unmovable(WB_MODE_RECEIVE_ONLY, 1);
}

static void prepare_unmovable_plain(void)
{
    prepare_unmovable(WB_MODE_RECEIVE_ONLY, 0);
}

static void prepare_unmovable_atomic(void)
{
    prepare_unmovable(WB_MODE_SENDS_ATOMIC, 0);
}

static void prepare_unmovable_none(void)
{
    prepare_unmovable(WB_MODE_NONE, 0);
}

/* ---- retries without count ---- */

static void prepare_uncounted(int mode, int outbox, sim_fate fate)
{
    sim_shape_plain(mode, outbox);
    the_shape.workers = 2;
    sim_scene_add(1, fate);
    sim_scene_add(20, SIM_GOOD);
}

static void prepare_fatal_send(void)
{
    prepare_uncounted(WB_MODE_RECEIVE_ONLY, 0, SIM_FATAL_SEND);
}

static void prepare_fatal_send_outbox(void)
{
    prepare_uncounted(WB_MODE_RECEIVE_ONLY, 1, SIM_FATAL_SEND);
}

static void prepare_commit_aborts(void)
{
    prepare_uncounted(WB_MODE_SENDS_ATOMIC, 0, SIM_COMMIT_ABORTS);
}

static void prepare_commit_aborts_scope(void)
{
    prepare_uncounted(WB_MODE_TRANSACTION_SCOPE, 0, SIM_COMMIT_ABORTS);
}

static void prepare_nacked(void)
{
    prepare_uncounted(WB_MODE_RECEIVE_ONLY, 0, SIM_NACKED);
}

static void prepare_nacked_outbox(void)
{
    prepare_uncounted(WB_MODE_RECEIVE_ONLY, 1, SIM_NACKED);
}

static void prepare_nacked_atomic(void)
{
    prepare_uncounted(WB_MODE_SENDS_ATOMIC, 0, SIM_NACKED);
}

static void prepare_unroutable(void)
{
    prepare_uncounted(WB_MODE_RECEIVE_ONLY, 0, SIM_UNROUTABLE);
}

static void prepare_unroutable_outbox(void)
{
    prepare_uncounted(WB_MODE_RECEIVE_ONLY, 1, SIM_UNROUTABLE);
}

/* ---- what an earlier life left ---- */

/* It was committed and not dispatched, and comes again. */
static void add_undispatched(unsigned serial)
{
    wb_storage_session session = { 0 };
    sim_message *m = sim_populate_one(0, SIM_GOOD, 0);
    uint64_t batch = sim_process_batch(sim_true_wall() - 10 * WB_SECOND, serial);
    wb_claim claim = { m->id, m->id_size, 0 };
    sim_database_claim(&session, batch, &claim);
    sim_transaction_commit(&session.own, 0, NULL);
    m->commits = 1;
    m->asked = 1u << SIM_LABEL_FIRST;
    sim_process_store_row(0, batch, &(const char *){ SIM_SINK }, m->number, 1);
}

static void prepare_resume_breaks(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 2;
    sim_scene_add(30, SIM_GOOD); /* by then a batch is large */
}

/* The connection of who resumes breaks before it has sent what it just committed; then the other one gets that, and nobody
 * commits anything else. */
static void drive_resume_breaks(void)
{
    sim_drive_start();
    for (unsigned i = 0; i < 60; i++) {
        sim_scene_expect_good(60 * WB_SECOND);
        for (unsigned k = 0; k < 2; k++) {
            add_undispatched(2 * i + k);
            sim_scene_add(1, SIM_GOOD);
        }
        sim_outage_start(SIM_SENDS_BREAK, sim_now() + sim_random_between(5, 30) * WB_MILLISECOND);
        sim_broker_publish(0);
    }
    sim_scene_expect_good(60 * WB_SECOND);
    sim_scene_end(SIM_SOON);
}

/* ---- ids ---- */

static void prepare_immediate_ids(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(10, SIM_IMMEDIATE);
}

/* ---- poison operations ---- */

static void prepare_poison_operation(int outbox, sim_fate fate)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, outbox);
    the_shape.workers = 2;
    sim_scene_add(15, SIM_GOOD);
    sim_scene_add(1, fate);
    sim_scene_add(30, SIM_GOOD);
}

static void prepare_bad_reply(void)
{
    prepare_poison_operation(1, SIM_BAD_REPLY);
}

static void prepare_bad_reply_plain(void)
{
    prepare_poison_operation(0, SIM_BAD_REPLY);
}

static void prepare_poison_send(void)
{
    prepare_poison_operation(1, SIM_POISON_SEND);
}

static void prepare_poison_send_plain(void)
{
    prepare_poison_operation(0, SIM_POISON_SEND);
}

static void prepare_poison_move(void)
{
    prepare_poison_operation(1, SIM_POISON_MOVE);
}

static void prepare_poison_move_plain(void)
{
    prepare_poison_operation(0, SIM_POISON_MOVE);
}

/* Where each death of the session counts for what is in hand, and the broker drops after twenty. */
static void prepare_poison_move_limit(void)
{
    prepare_poison_move_plain();
    the_shape.workers = 1;
    the_shape.delivery_limit = 20;
    the_shape.tells_limit = 1;
    the_shape.steps_max = 10000000;
}

static void drive_two_days(void)
{
    sim_drive_start();
    sim_sleep(48 * SIM_HOUR);
    sim_drive_stop();
    sim_audit();
}

static void prepare_poison_move_rests(void)
{
    prepare_poison_move_plain();
    the_shape.workers = 1;
    the_shape.steps_max = 10000000;
}

/* An hour apart in the end: each try costs what is in hand a delivery. */
static void drive_rests(void)
{
    drive_two_days();
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].delivery_count > 80)
            sim_violation("message %u was delivered %u times in two days", i, sim_messages[i].delivery_count);
}

/* What was given up is tried again now and then, in earnest. */
static void drive_healed(void)
{
    unsigned moved = 0;
    sim_drive_start();
    sim_sleep(600 * WB_SECOND);
    sim_broker_heal();
    sim_sleep(4 * SIM_HOUR);
    sim_drive_stop();
    sim_audit();
    for (unsigned i = 0; i < sim_message_count; i++)
        moved += sim_messages[i].fate == SIM_POISON_MOVE && sim_messages[i].moved;
    if (moved != 1)
        sim_violation("a broker that was ill is not tried again when it is well");
}

/* ---- copies for the audit queue ---- */

static void prepare_audited_in(int mode, int outbox)
{
    sim_shape_plain(mode, outbox);
    the_shape.audits = 1;
    the_shape.workers = 2;
    sim_scene_add(20, SIM_GOOD);
    sim_scene_add(2, SIM_POISON);
    sim_scene_add(2, SIM_FAILING);
    sim_scene_add(2, SIM_UNROUTABLE);
    sim_scene_add(2, SIM_CONTROL);
    sim_scene_add(1, SIM_NO_HANDLER);
    sim_scene_add(20, SIM_GOOD);
}

static void prepare_audited(void)
{
    prepare_audited_in(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(1, SIM_KILLER);
    sim_scene_add(1, SIM_POISON_SEND);
}

static void prepare_audited_plain(void)
{
    prepare_audited_in(WB_MODE_RECEIVE_ONLY, 0);
}

static void prepare_audited_none(void)
{
    prepare_audited_in(WB_MODE_NONE, 0);
}

static void prepare_audited_atomic(void)
{
    prepare_audited_in(WB_MODE_SENDS_ATOMIC, 0);
}

static void prepare_audited_scope(void)
{
    prepare_audited_in(WB_MODE_TRANSACTION_SCOPE, 0);
}

/* ---- what handlers want for what fails ---- */

static void prepare_given_up_in(int mode, int outbox)
{
    sim_shape_plain(mode, outbox);
    the_shape.audits = 1;
    the_shape.workers = 2;
    for (int i = 0; i < 4; i++) {
        sim_scene_add(5, SIM_GOOD);
        sim_scene_add(2, SIM_DISCARDED);
        sim_scene_add(3, SIM_ELSEWHERE);
    }
}

static void prepare_given_up(void)
{
    prepare_given_up_in(WB_MODE_RECEIVE_ONLY, 1);
}

static void prepare_given_up_plain(void)
{
    prepare_given_up_in(WB_MODE_RECEIVE_ONLY, 0);
}

static void prepare_given_up_none(void)
{
    prepare_given_up_in(WB_MODE_NONE, 0);
}

static void prepare_given_up_atomic(void)
{
    prepare_given_up_in(WB_MODE_SENDS_ATOMIC, 0);
}

static void prepare_given_up_scope(void)
{
    prepare_given_up_in(WB_MODE_TRANSACTION_SCOPE, 0);
}

/* ---- privileges ---- */

/* Nobody may send, and after a while somebody grants it: no message has failed meanwhile. */
static void prepare_forbidden_in(int mode, int outbox)
{
    sim_shape_plain(mode, outbox);
    the_shape.workers = 2;
    sim_scene_add(30, SIM_GOOD);
}

static void prepare_forbidden(void)
{
    prepare_forbidden_in(WB_MODE_RECEIVE_ONLY, 1);
}

static void prepare_forbidden_plain(void)
{
    prepare_forbidden_in(WB_MODE_RECEIVE_ONLY, 0);
}

static void prepare_forbidden_atomic(void)
{
    prepare_forbidden_in(WB_MODE_SENDS_ATOMIC, 0);
}

static void drive_forbidden(void)
{
    sim_drive_start();
    sim_outage_start(SIM_BROKER_FORBIDS, sim_now() + 10 * 60 * WB_SECOND);
    sim_sleep(10 * 60 * WB_SECOND);
    unsigned long lines = sim_log_lines();
    sim_scene_end(6 * SIM_HOUR);
    if (lines > 400)
        sim_violation("%lu lines in ten minutes without a privilege", lines);
}

/* ---- the list ---- */

const sim_scenario sim_scenarios_dispatch[] = {
    { "refused_in_transaction", "a refused message beside a failing one, sends_atomic_with_receive",
      prepare_refused_atomic, sim_scene_plainly },
    { "refused_in_scope", "the same in transaction_scope", prepare_refused_scope, sim_scene_plainly },
    { "unmovable_outbox", "messages the error queue refuses, with outbox", prepare_unmovable_outbox,
      sim_scene_good_first },
    { "unmovable_plain", "the same without outbox", prepare_unmovable_plain, sim_scene_good_first },
    { "unmovable_atomic", "the same in a transport transaction", prepare_unmovable_atomic, sim_scene_good_first },
    { "unmovable_none", "the same with mode none, and stops", prepare_unmovable_none, sim_scene_stops },
    { "fatal_send", "sending is WB_FATAL, without outbox", prepare_fatal_send, sim_scene_plainly },
    { "fatal_send_outbox", "the same with outbox", prepare_fatal_send_outbox, sim_scene_plainly },
    { "commit_aborts", "a transport transaction that never commits", prepare_commit_aborts, sim_scene_good_first },
    { "commit_aborts_scope", "the same in transaction_scope", prepare_commit_aborts_scope, sim_scene_good_first },
    { "nacked", "a destination that nacks for ever, without outbox", prepare_nacked, sim_scene_good_first },
    { "nacked_outbox", "the same with outbox", prepare_nacked_outbox, sim_scene_good_first },
    { "nacked_atomic", "the same in a transport transaction", prepare_nacked_atomic, sim_scene_good_first },
    { "forbidden", "nobody may send for a while, with outbox", prepare_forbidden, drive_forbidden },
    { "forbidden_plain", "the same without outbox", prepare_forbidden_plain, drive_forbidden },
    { "forbidden_atomic", "the same in a transport transaction", prepare_forbidden_atomic, drive_forbidden },
    { "audited", "a copy of each handled message, with outbox", prepare_audited, sim_scene_plainly },
    { "audited_plain", "the same without outbox", prepare_audited_plain, sim_scene_plainly },
    { "audited_none", "the same with mode none", prepare_audited_none, sim_scene_plainly },
    { "audited_atomic", "the same in a transport transaction", prepare_audited_atomic, sim_scene_plainly },
    { "audited_scope", "the same in transaction_scope", prepare_audited_scope, sim_scene_plainly },
    { "given_up", "messages that are discarded, or moved to other error queues", prepare_given_up,
      sim_scene_good_first },
    { "given_up_plain", "the same without outbox", prepare_given_up_plain, sim_scene_good_first },
    { "given_up_none", "the same with mode none", prepare_given_up_none, sim_scene_good_first },
    { "given_up_atomic", "the same in a transport transaction", prepare_given_up_atomic, sim_scene_good_first },
    { "given_up_scope", "the same in transaction_scope", prepare_given_up_scope, sim_scene_good_first },
    { "unroutable", "a destination that is not there, without outbox", prepare_unroutable, sim_scene_good_first },
    { "unroutable_outbox", "the same with outbox", prepare_unroutable_outbox, sim_scene_good_first },
    { "resume_breaks", "sending breaks while what an earlier life left is resumed", prepare_resume_breaks,
      drive_resume_breaks },
    { "immediate_ids", "an immediate send of a failed attempt has an id of its own", prepare_immediate_ids,
      sim_scene_plainly },
    { "bad_reply", "a reply address of bytes that end the connection", prepare_bad_reply, sim_scene_good_first },
    { "bad_reply_plain", "the same without outbox", prepare_bad_reply_plain, sim_scene_good_first },
    { "poison_send", "an operation that ends its connection", prepare_poison_send, sim_scene_good_first },
    { "poison_send_plain", "the same without outbox", prepare_poison_send_plain, sim_scene_good_first },
    { "poison_move", "a move to the error queue that ends its connection", prepare_poison_move,
      sim_scene_good_first },
    { "poison_move_limit", "the same under a delivery limit of 20, for two days", prepare_poison_move_limit,
      drive_two_days },
    { "poison_move_rests", "the same without limit", prepare_poison_move_rests, drive_rests },
    { "poison_move_healed", "the same, and one day it does not", prepare_poison_move, drive_healed },
    { "poison_move_healed_plain", "the same without outbox", prepare_poison_move_plain, drive_healed },
    { NULL, NULL, NULL, NULL },
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/scenarios.h"

#include <waybill/sys/plugin.h>

#include "tests/simulation/audit.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/population.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

#define HOUR (3600 * WB_SECOND)
#define DAY (24 * HOUR)

/* ---- material ---- */

static void add(unsigned count, sim_fate fate)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned endpoint = 0; endpoint < the_shape.endpoints; endpoint++)
            (void)sim_populate_one(endpoint, fate, 0);
}

/* One that an earlier life handled; of its operations one is pending for that destination. */
static void add_pending(const char *destination, int64_t age)
{
    sim_message *m = sim_populate_one(0, SIM_GOOD, 0);
    m->place = SIM_GONE;
    m->commits = 1;
    m->asked = destination[0] == SIM_SINK[0] ? 1u << SIM_LABEL_FIRST : 0;
    sim_process_store_row(0, sim_process_batch(sim_true_wall() - age, m->number), destination, m->number);
}

/* ---- courses ---- */

static void drive_for(int64_t patience)
{
    sim_drive_start();
    sim_drive_calm(patience);
    sim_drive_stop();
    sim_audit();
}

static void drive_plainly(void)
{
    drive_for(6 * HOUR);
}

/* Good messages do not wait for the bad ones: they are done in a minute. */
static int good_are_done(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (!(sim_fates[sim_messages[i].fate].flags & SIM_MAY_FAIL) &&
            sim_messages[i].fate != SIM_HANGS && sim_messages[i].place != SIM_GONE)
            return 0;
    return 1;
}

static void expect_good(int64_t within)
{
    if (!sim_wait("the good ones", sim_now() + within, good_are_done, NULL))
        sim_violation("good messages are not done after %.0f s", (double)within / 1e9);
}

static void drive_good_first(void)
{
    sim_drive_start();
    expect_good(120 * WB_SECOND);
    sim_drive_calm(6 * HOUR);
    sim_drive_stop();
    sim_audit();
}

/* What nobody can finish must still let the process end, time and again. */
static void drive_stops(void)
{
    sim_drive_start();
    for (int i = 0; i < 5; i++) {
        sim_sleep(sim_random_between(100 * WB_MILLISECOND, 3 * WB_SECOND));
        sim_drive_stop();
        sim_drive_start();
    }
    sim_drive_calm(6 * HOUR);
    sim_drive_stop();
    sim_audit();
}

/* ---- A.1 transport transactions ---- */

static void prepare_refused_in_transaction(int mode)
{
    sim_shape_plain(mode, 0);
    add(1, SIM_NO_HANDLER);
    add(1, SIM_DEFERRED);
    add(4, SIM_GOOD);
    add(1, SIM_NO_HANDLER);
    add(1, SIM_BREAKS);
    add(4, SIM_GOOD);
}

static void prepare_refused_atomic(void)
{
    prepare_refused_in_transaction(WB_MODE_SENDS_ATOMIC);
}

static void prepare_refused_scope(void)
{
    prepare_refused_in_transaction(WB_MODE_TRANSACTION_SCOPE);
}

/* ---- A.2 limits and suspects ---- */

static void prepare_limit(uint32_t limit, unsigned retries, int outbox)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, outbox);
    the_shape.delivery_limit = limit;
    the_shape.tells_limit = 1;
    the_shape.retries = retries;
}

static void prepare_limit_killer(void)
{
    prepare_limit(20, 3, 0);
    add(5, SIM_GOOD);
    add(1, SIM_KILLER);
    add(14, SIM_GOOD);
}

static void prepare_limit_killer_low(void)
{
    prepare_limit(7, 3, 0);
    add(5, SIM_GOOD);
    add(1, SIM_KILLER);
    add(14, SIM_GOOD);
}

static void prepare_limit_killer_outbox(void)
{
    prepare_limit(7, 3, 1);
    add(5, SIM_GOOD);
    add(1, SIM_KILLER);
    add(14, SIM_GOOD);
}

static void prepare_limit_stops(void)
{
    prepare_limit(3, 1, 0);
    the_shape.workers = 2;
    add(30, SIM_SLOW);
}

static void prepare_two_endpoints(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.endpoints = 2;
    the_shape.workers = 2;
    for (int i = 0; i < 3; i++)
        (void)sim_populate_one(0, SIM_KILLER, 0);
    for (int i = 0; i < 8; i++)
        (void)sim_populate_one(1, SIM_SLOW, 0);
}

/* ---- A.3 sweeper ---- */

/* Two rounds see them, the second sends. */
static void drive_sweep(void)
{
    sim_drive_start();
    sim_drive_calm(100 * WB_SECOND);
    sim_drive();
}

static void prepare_sweep(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.steps_max = 2000000;
}

static void prepare_sweep_first_fails(void)
{
    prepare_sweep();
    add_pending(SIM_SINK, 4 * HOUR);
    add_pending(SIM_KILLS, 3 * HOUR);
    add_pending(SIM_NACKS, 3 * HOUR);
    for (int i = 0; i < 10; i++)
        add_pending(SIM_SINK, 2 * HOUR);
    add(10, SIM_GOOD);
}

static void prepare_sweep_fatal(void)
{
    prepare_sweep();
    add_pending(SIM_FATAL_QUEUE, 3 * HOUR);
    for (int i = 0; i < 10; i++)
        add_pending(SIM_SINK, 2 * HOUR);
}

static void prepare_sweep_without_cursor(void)
{
    prepare_sweep_first_fails();
    the_shape.has_next_pending = 0;
}

static void prepare_sweep_unreadable(void)
{
    prepare_sweep();
    (void)sim_database_store(0, sim_process_batch(sim_true_wall() - 5 * HOUR, 1), "WBO9later", 9, 1);
    for (int i = 0; i < 5; i++)
        add_pending(SIM_SINK, 2 * HOUR);
    add(5, SIM_GOOD);
}

/* A later version handled the message and died before it dispatched; the message comes to us. */
static void prepare_duplicate_unreadable(void)
{
    wb_storage_session session = { 0 };
    prepare_sweep();
    add(5, SIM_GOOD);
    sim_message *m = sim_populate_one(0, SIM_GOOD, 0);
    uint64_t batch = sim_process_batch(sim_true_wall() - 10 * WB_SECOND, 77);
    wb_claim claim = { m->id, m->id_size, 0 };
    m->is_foreigns = 1;
    sim_database_claim(&session, batch, &claim);
    sim_transaction_commit(&session.own, 0, NULL);
    (void)sim_database_store(0, batch, "WBO9later", 9, 1);
    add(5, SIM_GOOD);
}

static void prepare_sweep_many(void)
{
    prepare_sweep();
    sim_message *m = sim_populate_one(0, SIM_GOOD, 0);
    m->place = SIM_GONE;
    m->commits = 1;
    for (unsigned i = 0; i < 11000; i++)
        sim_process_store_row(0, sim_process_batch(sim_true_wall() - 5 * HOUR, i), SIM_NOWHERE, m->number);
    for (int i = 0; i < 5; i++)
        add_pending(SIM_SINK, 2 * HOUR);
    add(10, SIM_GOOD);
}

/* Not after the 11,000 were tried time and again. */
static void drive_sweep_many(void)
{
    char what[120];
    sim_drive_start();
    for (int i = 0; !sim_audit_is_finished(what, sizeof what); i++) {
        if (i == 180)
            sim_violation("%s behind 11,000 others", what);
        sim_sleep(60 * WB_SECOND);
    }
    unsigned long lines = sim_log_lines();
    sim_sleep(2 * HOUR);
    if (sim_log_lines() - lines > 8 * 11000) /* each is tried after 1, 2, 4, ... 60 minutes */
        sim_violation("%lu lines in two hours about rows that cannot be dispatched", sim_log_lines() - lines);
    sim_drive_stop();
    sim_audit();
}

/* ---- A.4 blame ---- */

static void prepare_blame(int has_check)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.has_check = has_check;
    add(1, SIM_GOOD);
    for (int i = 0; i < 4; i++) {
        add(1, SIM_DEFERRED);
        add(3, SIM_TOUCHY);
    }
}

static void prepare_blame_checked(void)
{
    prepare_blame(1);
}

static void prepare_blame_unchecked(void)
{
    prepare_blame(0);
}

/* ---- A.5 unmovable ---- */

static void prepare_unmovable(int mode, int outbox)
{
    sim_shape_plain(mode, outbox);
    the_shape.error_size_max = 6000;
    the_shape.workers = 2;
    add(2, SIM_UNMOVABLE);
    add(2, SIM_BULKY);
    add(1, SIM_LARGE_HEADERS);
    add(1, SIM_MANY_HEADERS);
    add(10, SIM_GOOD);
    add(1, SIM_UNMOVABLE);
    add(10, SIM_GOOD);
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

/* ---- A.6 stops ---- */

static void prepare_stop_suspects(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 3;
    the_shape.hangs_hard = 1;
    the_shape.batch_max = 1;
    add(1, SIM_HANGS);
    add(6, SIM_GOOD);
    for (unsigned i = 0; i < sim_message_count; i++)
        sim_messages[i].delivery_count = 4;
}

static void drive_one_stop(void)
{
    sim_drive_start();
    sim_sleep(5 * WB_SECOND);
    sim_drive_stop();
    sim_drive_start();
    sim_sleep(5 * WB_SECOND);
    sim_drive_stop();
    sim_drive_start();
    sim_drive_calm(6 * HOUR);
    sim_drive_stop();
    sim_audit();
}

/* A round that meets a slow broker, or one that takes nothing for now, has long to go. */
static void prepare_stop_round(void)
{
    prepare_sweep();
    the_shape.keeper_interval = WB_SECOND;
    for (int i = 0; i < 300; i++)
        add_pending(SIM_SINK, 2 * HOUR);
}

static void drive_stop_round(void)
{
    sim_drive_start();
    sim_outage_start(SIM_BROKER_SLOW, sim_now() + HOUR);
    for (int i = 0; i < 8; i++) {
        if (i == 4)
            sim_outage_start(SIM_BROKER_NACKS, sim_now() + HOUR);
        sim_sleep(sim_random_between(WB_SECOND, 20 * WB_SECOND));
        sim_drive_stop();
        sim_drive_start();
    }
    sim_drive_calm(12 * HOUR);
    sim_drive_stop();
    sim_audit();
}

/* ---- A.7 retries without count ---- */

static void prepare_uncounted(int mode, int outbox, sim_fate fate)
{
    sim_shape_plain(mode, outbox);
    the_shape.workers = 2;
    add(1, fate);
    add(20, SIM_GOOD);
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

/* ---- A.8 ids ---- */

static void prepare_immediate_ids(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    add(10, SIM_IMMEDIATE);
}

/* ---- A.9 memory ---- */

static void prepare_nobody_handles(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.pushes = 0;
    the_shape.has_prefetch = 0;
    the_shape.steps_max = 2000000;
    add(2000, SIM_NO_HANDLER);
    add(10, SIM_GOOD);
}

/* ---- A.10 clocks ---- */

static void prepare_clock(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.processes = 2;
    the_shape.retention = 7 * DAY;
    add(20, SIM_GOOD);
}

/* What was handled under a wrong clock comes once more when rounds have passed. */
static void drive_clock(int64_t offset)
{
    unsigned before = sim_message_count;
    sim_set_wall_offset(2, offset);
    sim_drive_start();
    sim_drive_calm(HOUR);
    unsigned until = sim_process_rounds() + 8;
    while (sim_process_rounds() < until)
        sim_sleep(10 * WB_SECOND);
    for (unsigned i = 0; i < before; i++)
        (void)sim_populate_copy(&sim_messages[i], -1);
    sim_drive_calm(HOUR);
    sim_drive_stop();
    sim_audit();
}

static void drive_clock_ahead(void)
{
    drive_clock(8 * DAY);
}

static void drive_clock_behind(void)
{
    drive_clock(-8 * DAY);
}

/* ---- A.11 poison operations ---- */

static void prepare_poison_operation(int outbox, sim_fate fate)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, outbox);
    the_shape.workers = 2;
    add(15, SIM_GOOD);
    add(1, fate);
    add(30, SIM_GOOD);
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

/* ---- A.12 whose fault ---- */

static void prepare_disk_full(int outbox)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, outbox);
    the_shape.workers = 2;
    add(40, SIM_GOOD);
}

static void prepare_disk_full_outbox(void)
{
    prepare_disk_full(1);
}

static void prepare_disk_full_plain(void)
{
    prepare_disk_full(0);
}

static void drive_disk_full(void)
{
    sim_outage_start(SIM_DISK_FULL, sim_now() + 120 * WB_SECOND);
    sim_drive_start();
    sim_sleep(121 * WB_SECOND);
    if (sim_steps_taken() > 4000)
        sim_violation("%ld steps in two minutes of a full disk", sim_steps_taken());
    unsigned long lines = sim_log_lines();
    sim_drive_calm(HOUR);
    sim_drive_stop();
    sim_audit();
    if (lines > 60)
        sim_violation("%lu lines about a full disk", lines);
}

static void prepare_quota(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    add(10, SIM_GOOD);
    add(1, SIM_QUOTA);
    add(10, SIM_GOOD);
}

/* Nothing else has succeeded yet, and it stands in front. */
static void prepare_quota_first(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    add(1, SIM_QUOTA);
    add(10, SIM_GOOD);
}

static void prepare_quota_first_plain(void)
{
    prepare_quota_first();
    the_shape.outbox = the_shape.keepers = 0;
}

/* ---- A.13 copies ---- */

static void prepare_copies(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    add(60, SIM_GOOD); /* by then a batch is large */
    for (int i = 0; i < 4; i++) {
        const sim_message *first = sim_populate_one(0, i % 2 ? SIM_FAILING : SIM_POISON, 0);
        (void)sim_populate_copy(first, SIM_GOOD);
        (void)sim_populate_copy(first, SIM_POISON);
        first = sim_populate_one(0, SIM_GOOD, 0);
        (void)sim_populate_copy(first, SIM_GOOD);
    }
}

/* Those in hand beside the first share its fate. */
static void drive_copies(void)
{
    unsigned shared = 0;
    drive_plainly();
    for (unsigned i = 0; i < sim_message_count; i++)
        shared += sim_messages[i].fate == SIM_GOOD && sim_messages[i].moved;
    if (!shared)
        sim_violation("no copy shared the fate of the first");
}

/* ---- A.14 slow handlers ---- */

static void prepare_slow(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 5;
    the_shape.batch_max = 100;
    add(16, SIM_SLOW);
}

static void drive_slow(void)
{
    sim_drive_start();
    expect_good(8 * WB_SECOND); /* five workers: a third of that; one: sixteen */
    sim_drive_stop();
    sim_audit();
}

static void prepare_hanging(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 2;
    the_shape.batch_max = 100;
    add(1, SIM_HANGS);
    add(20, SIM_GOOD);
}

static void drive_hanging(void)
{
    sim_drive_start();
    expect_good(30 * WB_SECOND);
    sim_drive_calm(HOUR);
    sim_drive_stop();
    sim_audit();
}

/* ---- the list ---- */

static const sim_scenario scenarios[] = {
    { "refused_in_transaction", "a refused message beside a failing one, sends_atomic_with_receive",
      prepare_refused_atomic, drive_plainly },
    { "refused_in_scope", "the same in transaction_scope", prepare_refused_scope, drive_plainly },
    { "limit_killer", "a killer under a delivery limit of 20, without outbox", prepare_limit_killer,
      drive_plainly },
    { "limit_killer_low", "the same under a limit of 7", prepare_limit_killer_low, drive_plainly },
    { "limit_killer_outbox", "the same with outbox", prepare_limit_killer_outbox, drive_plainly },
    { "limit_stops", "five orderly stops under a limit of 3", prepare_limit_stops, drive_stops },
    { "suspect_across_endpoints", "killers in one endpoint beside slow innocents in another",
      prepare_two_endpoints, drive_plainly },
    { "sweep_first_fails", "rows that cannot be dispatched before rows that can", prepare_sweep_first_fails,
      drive_sweep },
    { "sweep_without_cursor", "the same with a persistence without next_pending()",
      prepare_sweep_without_cursor, drive_sweep },
    { "sweep_fatal", "a row whose dispatch is WB_FATAL before rows that can be dispatched", prepare_sweep_fatal,
      drive_sweep },
    { "sweep_unreadable", "a row of a later version stops nobody", prepare_sweep_unreadable, drive_sweep },
    { "duplicate_unreadable", "a duplicate whose row is of a later version", prepare_duplicate_unreadable,
      drive_sweep },
    { "sweep_many", "good rows behind 11,000 that cannot be dispatched", prepare_sweep_many, drive_sweep_many },
    { "blame", "unrecoverable, but a neighbour broke the transaction", prepare_blame_checked, drive_plainly },
    { "blame_unchecked", "the same with a persistence without check()", prepare_blame_unchecked,
      drive_plainly },
    { "unmovable_outbox", "messages the error queue refuses, with outbox", prepare_unmovable_outbox,
      drive_good_first },
    { "unmovable_plain", "the same without outbox", prepare_unmovable_plain, drive_good_first },
    { "unmovable_atomic", "the same in a transport transaction", prepare_unmovable_atomic, drive_good_first },
    { "unmovable_none", "the same with mode none, and stops", prepare_unmovable_none, drive_stops },
    { "stop_suspects", "a hanging suspect, others wait for their turn, and a stop", prepare_stop_suspects,
      drive_one_stop },
    { "stop_round", "a stop in a long round of the housekeeper", prepare_stop_round, drive_stop_round },
    { "fatal_send", "sending is WB_FATAL, without outbox", prepare_fatal_send, drive_plainly },
    { "fatal_send_outbox", "the same with outbox", prepare_fatal_send_outbox, drive_plainly },
    { "commit_aborts", "a transport transaction that never commits", prepare_commit_aborts, drive_good_first },
    { "commit_aborts_scope", "the same in transaction_scope", prepare_commit_aborts_scope, drive_good_first },
    { "nacked", "a destination that nacks for ever, without outbox", prepare_nacked, drive_good_first },
    { "nacked_outbox", "the same with outbox", prepare_nacked_outbox, drive_good_first },
    { "nacked_atomic", "the same in a transport transaction", prepare_nacked_atomic, drive_good_first },
    { "unroutable", "a destination that is not there, without outbox", prepare_unroutable, drive_good_first },
    { "unroutable_outbox", "the same with outbox", prepare_unroutable_outbox, drive_good_first },
    { "immediate_ids", "an immediate send of a failed attempt has an id of its own", prepare_immediate_ids,
      drive_plainly },
    { "nobody_handles", "2,000 messages without handler, taken without prefetch", prepare_nobody_handles,
      drive_plainly },
    { "clock_ahead", "a host whose clock is 8 days ahead", prepare_clock, drive_clock_ahead },
    { "clock_behind", "a host whose clock is 8 days behind", prepare_clock, drive_clock_behind },
    { "bad_reply", "a reply address of bytes that end the connection", prepare_bad_reply, drive_good_first },
    { "bad_reply_plain", "the same without outbox", prepare_bad_reply_plain, drive_good_first },
    { "poison_send", "an operation that ends its connection", prepare_poison_send, drive_good_first },
    { "poison_send_plain", "the same without outbox", prepare_poison_send_plain, drive_good_first },
    { "poison_move", "a move to the error queue that ends its connection", prepare_poison_move,
      drive_good_first },
    { "disk_full", "two minutes of a full disk", prepare_disk_full_outbox, drive_disk_full },
    { "disk_full_plain", "the same without outbox", prepare_disk_full_plain, drive_disk_full },
    { "quota", "a statement that always meets a full disk", prepare_quota, drive_good_first },
    { "quota_first", "the same, the first message of all", prepare_quota_first, drive_good_first },
    { "quota_first_plain", "the same without outbox", prepare_quota_first_plain, drive_good_first },
    { "copies", "copies of one id with other bodies, in one batch", prepare_copies, drive_copies },
    { "slow_handlers", "a backlog of slow messages uses all workers", prepare_slow, drive_slow },
    { "hanging_handler", "nobody stands behind a hanging handler", prepare_hanging, drive_hanging },
    { NULL, NULL, NULL, NULL },
};

const sim_scenario *sim_scenario_at(size_t index)
{
    return scenarios[index].name ? &scenarios[index] : NULL;
}

static const sim_scenario *running;

static void drive_running(void)
{
    running->drive();
}

void sim_scenario_run(const sim_scenario *scenario, uint64_t seed)
{
    running = scenario;
    sim_random_start(seed);
    scenario->prepare();
    sim_scheduler_limit(the_shape.steps_max);
    sim_scheduler_run(drive_running, the_shape.switching);
}

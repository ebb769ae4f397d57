/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of the database: broken transactions, clocks, full disks, copies.
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
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* ---- blame ---- */

static void prepare_blame(int has_check)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.has_check = has_check;
    sim_scene_add(1, SIM_GOOD);
    for (int i = 0; i < 4; i++) {
        sim_scene_add(1, SIM_DEFERRED);
        sim_scene_add(3, SIM_TOUCHY);
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

/* ---- clocks ---- */

static void prepare_clock(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.processes = 2;
    the_shape.retention = 7 * SIM_DAY;
    sim_scene_add(20, SIM_GOOD);
}

/* What was handled under a wrong clock comes once more when rounds have passed. */
static void drive_clock(int64_t offset)
{
    unsigned before = sim_message_count;
    sim_set_wall_offset(2, offset);
    sim_drive_start();
    sim_drive_calm(SIM_HOUR);
    unsigned until = sim_process_rounds() + 8;
    while (sim_process_rounds() < until)
        sim_sleep(10 * WB_SECOND);
    for (unsigned i = 0; i < before; i++)
        (void)sim_populate_copy(&sim_messages[i], -1);
    sim_scene_end(SIM_HOUR);
}

static void drive_clock_ahead(void)
{
    drive_clock(8 * SIM_DAY);
}

static void drive_clock_behind(void)
{
    drive_clock(-8 * SIM_DAY);
}

/* ---- deadlocks ---- */

/* Halves of halves get through. */
static void prepare_claims_deadlock(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 2;
    the_shape.lonely = 1;
    sim_scene_add(40, SIM_GOOD);
}

/* ---- whose fault ---- */

static void prepare_disk_full(int outbox)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, outbox);
    the_shape.workers = 2;
    sim_scene_add(40, SIM_GOOD);
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
    sim_scene_end(SIM_HOUR);
    if (lines > 60)
        sim_violation("%lu lines about a full disk", lines);
}

static void prepare_quota(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(10, SIM_GOOD);
    sim_scene_add(1, SIM_QUOTA);
    sim_scene_add(10, SIM_GOOD);
}

/* Nothing else has succeeded yet, and it stands in front. */
static void prepare_quota_first(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(1, SIM_QUOTA);
    sim_scene_add(10, SIM_GOOD);
}

/* Others come and are done, now and then: then it is known whose fault that is. */
static void drive_quota_company(void)
{
    unsigned moved = 0;
    sim_drive_start();
    for (int i = 0; i < 12; i++) {
        sim_sleep(40 * WB_SECOND);
        sim_scene_add(1, SIM_GOOD);
        sim_broker_publish(0);
    }
    sim_scene_end(SIM_HOUR);
    for (unsigned i = 0; i < sim_message_count; i++)
        moved += sim_messages[i].fate == SIM_QUOTA && sim_messages[i].moved;
    if (moved != 1)
        sim_violation("%u of 1 messages over a quota are in the error queue", moved);
}

static void prepare_quota_first_plain(void)
{
    prepare_quota_first();
    the_shape.outbox = the_shape.keepers = 0;
}

/* ---- copies ---- */

static void prepare_copies(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(60, SIM_GOOD); /* by then a batch is large */
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
    sim_scene_plainly();
    for (unsigned i = 0; i < sim_message_count; i++)
        shared += sim_messages[i].fate == SIM_GOOD && sim_messages[i].moved;
    if (!shared)
        sim_violation("no copy shared the fate of the first");
}

/* ---- what counts for nobody ---- */

static void drive_breaks(sim_outage outage)
{
    sim_outage_start(outage, sim_now() + 120 * WB_SECOND);
    sim_drive_start();
    sim_sleep(121 * WB_SECOND);
    if (sim_steps_taken() > 4000)
        sim_violation("%ld steps in two minutes of broken commits", sim_steps_taken());
    sim_scene_end(SIM_HOUR);
}

static void drive_commits_break(void)
{
    drive_breaks(SIM_COMMITS_BREAK);
}

static void drive_writes_break(void)
{
    drive_breaks(SIM_WRITES_BREAK);
}

/* A proxy that flaps, or somebody who ends all backends: for three seconds. */
static void drive_statements_break(void)
{
    sim_outage_start(SIM_STATEMENTS_BREAK, sim_now() + 3 * WB_SECOND);
    sim_drive_start();
    sim_sleep(4 * WB_SECOND);
    sim_scene_end(SIM_HOUR);
}

/* One connection is lost, once; what follows is somebody else's trouble. */
static void drive_once_then_full(void)
{
    sim_outage_start(SIM_STATEMENTS_BREAK, sim_now() + 25 * WB_MILLISECOND);
    sim_drive_start();
    sim_sleep(30 * WB_MILLISECOND);
    sim_outage_start(SIM_STATEMENTS_FULL, sim_now() + SIM_HOUR);
    sim_sleep(SIM_HOUR);
    sim_outage_start(SIM_STATEMENTS_FULL, 0);
    sim_scene_end(SIM_HOUR);
}

static void prepare_commits_break_one(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(1, SIM_GOOD);
}

/* Nobody else is there to show that the database is well. */
static void prepare_cuts_lonely(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(1, SIM_CUTS);
    sim_scene_add(1, SIM_CUTS_LATE);
}

static void drive_cuts_lonely(void)
{
    sim_drive_start();
    sim_scene_end(120 * WB_SECOND);
}

/* Each makes what the core asks for next WB_FATAL on its session, and on no other. */
static void prepare_forbids(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(3, SIM_GOOD);
    for (int i = 0; i < 4; i++) {
        sim_scene_add(1, i % 2 ? SIM_FORBIDS_LATER : SIM_FORBIDS);
        sim_scene_add(3, SIM_GOOD);
    }
    sim_scene_add(1, SIM_FORBIDS);
    sim_scene_add(8, SIM_GOOD);
}

static void prepare_forbids_plain(void)
{
    prepare_forbids();
    the_shape.outbox = the_shape.keepers = 0;
}

static void drive_forbids(void)
{
    sim_scene_good_first();
    if (sim_process_gave_up())
        sim_violation("a worker gave up for what a handler did");
}

static void prepare_closes(void)
{
    sim_shape_plain(WB_MODE_TRANSACTION_SCOPE, 0);
    for (int i = 0; i < 4; i++) {
        sim_scene_add(2, SIM_GOOD);
        sim_scene_add(1, SIM_CLOSES);
    }
    sim_scene_add(8, SIM_GOOD);
}

/* What has failed can neither leave nor be done again: it waits, and time goes on. */
static void prepare_moves_refused(void)
{
    sim_shape_plain(WB_MODE_TRANSACTION_SCOPE, 0);
    sim_scene_add(2, SIM_FAILING);
    sim_scene_add(2, SIM_POISON);
    the_shape.steps_max = 20000; /* who does not pause takes more */
}

static void drive_moves_refused(sim_outage outage)
{
    sim_outage_start(outage, sim_now() + 120 * WB_SECOND);
    sim_drive_start();
    sim_sleep(121 * WB_SECOND);
    sim_scene_end(SIM_HOUR);
}

static void drive_moves_unacknowledged(void)
{
    drive_moves_refused(SIM_ACKNOWLEDGE_REFUSED);
}

static void drive_moves_uncommitted(void)
{
    drive_moves_refused(SIM_TRANSPORT_COMMIT_REFUSED);
}

/* In a transaction without a handler it is nobody's doing. */
static void drive_moves_forbidden(void)
{
    sim_outage_start(SIM_ACKNOWLEDGE_FORBIDDEN, sim_now() + 120 * WB_SECOND);
    sim_drive_start();
    sim_sleep(121 * WB_SECOND);
    if (!sim_process_gave_up())
        sim_violation("nobody gave up where what is moved cannot be acknowledged for want of a privilege");
    sim_scene_end(SIM_HOUR);
}

/* A privilege that an operator takes away is no message's fault: the worker says so and ends. */
static void drive_forbidden_by_operator(void)
{
    sim_outage_start(SIM_WRITES_FORBIDDEN, sim_now() + 120 * WB_SECOND);
    sim_drive_start();
    sim_sleep(121 * WB_SECOND);
    if (!sim_process_gave_up())
        sim_violation("nobody gave up for want of a privilege");
    sim_scene_end(SIM_HOUR);
}

static void prepare_ends(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    for (int i = 0; i < 8 * SIM_THENS; i++) {
        sim_scene_add(1, SIM_ENDS);
        sim_scene_add(2, SIM_GOOD);
    }
}

/* After one who ended it and was not found out, another fails. */
static void prepare_ends_company(void)
{
    static const sim_fate fates[] = { SIM_FLAKY, SIM_FAILING, SIM_POISON, SIM_BREAKS, SIM_DEFERRED, SIM_CUTS };
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    for (unsigned i = 0; i < 8 * SIM_THENS; i++) {
        sim_scene_add(1, SIM_GOOD);
        sim_scene_add(1, SIM_ENDS);
        sim_scene_add(1, i % 2 ? SIM_GOOD : fates[i / 2 % 6]);
    }
}

/* What is done about it fails, too: it is rolled back, refused for now, lost. */
static void prepare_ends_trouble(void)
{
    prepare_ends();
    the_shape.workers = 2;
    the_shape.ends_trouble = 1;
}

/* One seed in a hundred meets trouble for two minutes and more. */
static void drive_ends_trouble(void)
{
    sim_drive_start();
    sim_scene_expect_good(10 * 60 * WB_SECOND);
    sim_scene_end(6 * SIM_HOUR);
}

static void drive_ends_storm(void)
{
    the_shape.fault_permille = 150;
    sim_faults_storm(1);
    sim_drive_start();
    sim_sleep(300 * WB_SECOND);
    sim_faults_storm(0);
    sim_scene_end(6 * SIM_HOUR);
}

/* It promises at most once: who may have been committed does not run again. */
static void prepare_ends_none(void)
{
    prepare_ends();
    the_shape.mode = WB_MODE_NONE;
    the_shape.outbox = the_shape.keepers = the_shape.retries = 0;
}

static void prepare_doubt_none(void)
{
    sim_shape_plain(WB_MODE_NONE, 0);
    the_shape.persistence = 1;
    the_shape.workers = 2;
    the_shape.fault_permille = 100;
    sim_scene_add(60, SIM_GOOD);
}

/* There is no database: nothing undoes what was handled before. */
static void prepare_company_none(void)
{
    sim_shape_plain(WB_MODE_NONE, 0);
    sim_scene_add(20, SIM_GOOD);
    for (int i = 0; i < 8; i++) {
        sim_scene_add(3, SIM_GOOD);
        sim_scene_add(1, i % 2 ? SIM_POISON : SIM_FAILING);
        sim_scene_add(1, i % 4 ? SIM_GOOD : SIM_UNROUTABLE);
    }
}

/* Delivered often enough to be watched, and in hand at each of four orderly stops. */
static void prepare_suspect_stops(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add(1, SIM_GOOD);
    sim_messages[0].delivery_count = 4;
}

static void drive_suspect_stops(void)
{
    for (int i = 0; i < 4; i++) {
        sim_outage_start(SIM_STATEMENTS_FULL, sim_now() + SIM_HOUR);
        sim_drive_start();
        sim_sleep(3 * WB_SECOND);
        sim_drive_stop();
    }
    sim_outage_start(SIM_STATEMENTS_FULL, 0);
    sim_scene_plainly();
}

/* ---- the list ---- */

const sim_scenario sim_scenarios_storage[] = {
    { "blame", "unrecoverable, but a neighbour broke the transaction", prepare_blame_checked, sim_scene_plainly },
    { "blame_unchecked", "the same with a persistence without check()", prepare_blame_unchecked,
      sim_scene_plainly },
    { "clock_ahead", "a host whose clock is 8 days ahead", prepare_clock, drive_clock_ahead },
    { "clock_behind", "a host whose clock is 8 days behind", prepare_clock, drive_clock_behind },
    { "claims_deadlock", "claims of several ids meet a deadlock each time", prepare_claims_deadlock, sim_scene_soon },
    { "disk_full", "two minutes of a full disk", prepare_disk_full_outbox, drive_disk_full },
    { "disk_full_plain", "the same without outbox", prepare_disk_full_plain, drive_disk_full },
    { "quota", "a statement that always meets a full disk", prepare_quota, sim_scene_good_first },
    { "quota_first", "the same, the first message of all", prepare_quota_first, sim_scene_good_first },
    { "quota_first_plain", "the same without outbox", prepare_quota_first_plain, sim_scene_good_first },
    { "quota_company", "the same, and others are done meanwhile", prepare_quota, drive_quota_company },
    { "commits_break", "two minutes in which each commit ends the connection", prepare_disk_full_outbox,
      drive_commits_break },
    { "commits_break_plain", "the same without outbox", prepare_disk_full_plain, drive_commits_break },
    { "commits_break_one", "the same, and a single message", prepare_commits_break_one, drive_commits_break },
    { "writes_break", "the same, but for commits of nothing", prepare_disk_full_outbox, drive_writes_break },
    { "statements_break", "three seconds in which statements end the connection", prepare_disk_full_outbox,
      drive_statements_break },
    { "statements_break_one", "the same, and a single message", prepare_commits_break_one,
      drive_statements_break },
    { "once_then_full", "one connection lost, then a full disk", prepare_commits_break_one, drive_once_then_full },
    { "cuts_lonely", "statements and commits that end the connection, and nobody else", prepare_cuts_lonely,
      drive_cuts_lonely },
    { "ends", "handlers that end the transaction, in eight ways, and what may follow", prepare_ends,
      sim_scene_good_first },
    { "ends_trouble", "the same, and what is done about it fails, too", prepare_ends_trouble,
      drive_ends_trouble },
    { "ends_storm", "the same, and five minutes in which any call fails", prepare_ends, drive_ends_storm },
    { "ends_company", "the same among others that fail", prepare_ends_company, sim_scene_good_first },
    { "closes", "handlers that close the transport's connection", prepare_closes, sim_scene_good_first },
    { "moves_unacknowledged", "two minutes in which no transaction acknowledges", prepare_moves_refused,
      drive_moves_unacknowledged },
    { "moves_forbidden", "the same for want of a privilege", prepare_moves_refused, drive_moves_forbidden },
    { "moves_uncommitted", "the same, and none is committed", prepare_moves_refused, drive_moves_uncommitted },
    { "forbids", "handlers whose session is forbidden to commit, or everything behind it", prepare_forbids,
      drive_forbids },
    { "forbids_plain", "the same without outbox", prepare_forbids_plain, drive_forbids },
    { "forbidden_writes", "two minutes in which nobody may store what is sent", prepare_disk_full_outbox,
      drive_forbidden_by_operator },
    { "ends_none", "the same with mode none", prepare_ends_none, sim_scene_good_first },
    { "doubt_none", "and a minute in which any call fails, commits in doubt, too", prepare_doubt_none,
      sim_scene_faults },
    { "company_none", "mode none without database: who was handled before another one failed", prepare_company_none,
      sim_scene_good_first },
    { "suspect_stops", "orderly stops with a suspect in hand", prepare_suspect_stops, drive_suspect_stops },
    { "copies", "copies of one id with other bodies, in one batch", prepare_copies, drive_copies },
    { NULL, NULL, NULL, NULL },
};

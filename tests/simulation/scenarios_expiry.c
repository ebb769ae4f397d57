/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of messages with a time to be received.
 */
#include "config.h"

#include <stddef.h>
#include <waybill/sys/expiry.h>
#include <waybill/sys/plugin.h>

#include "tests/simulation/broker.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* Slow ones keep others waiting, so that some are late; those that fail have copies elsewhere. */
static void prepare(int mode, int outbox)
{
    sim_shape_plain(mode, outbox);
    the_shape.expires = 1;
    the_shape.expire_percent = 60;
    the_shape.processes = 2;
    the_shape.audits = 1;
    the_shape.error_size_max = 6000;
    for (int i = 0; i < 10; i++) {
        sim_scene_add(6, SIM_GOOD);
        sim_scene_add(2, SIM_SLOW);
        sim_scene_add(1, SIM_POISON);
        sim_scene_add(1, SIM_BULKY);
    }
    if (mode == WB_MODE_NONE)
        return;
    the_shape.native = 1;
    the_shape.delayed_retries = 3;
    sim_scene_add(10, SIM_FAILING);
    sim_scene_add(10, SIM_RECOVERS);
}

static void prepare_outbox(void)
{
    prepare(WB_MODE_RECEIVE_ONLY, 1);
}

static void prepare_plain(void)
{
    prepare(WB_MODE_RECEIVE_ONLY, 0);
}

static void prepare_none(void)
{
    prepare(WB_MODE_NONE, 0);
}

static void prepare_atomic(void)
{
    prepare(WB_MODE_SENDS_ATOMIC, 0);
}

static void prepare_scope(void)
{
    prepare(WB_MODE_TRANSACTION_SCOPE, 0);
}

static void prepare_deaths(void)
{
    prepare_outbox();
    the_shape.deaths = 1; /* for the audit */
}

static int may_expire(const sim_message *m)
{
    return wb_time_to_be_received(m->headers, m->header_count) != 0;
}

/* Some were late, and nobody else is dropped. */
static void expect_others(void)
{
    unsigned expired = 0;
    for (unsigned i = 0; i < sim_message_count; i++) {
        const sim_message *m = &sim_messages[i];
        expired += m->place == SIM_EXPIRED;
        if (m->place == SIM_EXPIRED && !may_expire(m))
            sim_violation("message %u expires and has no time to be received", i);
    }
    if (!expired)
        sim_violation("no message expires");
}

static void drive(void)
{
    sim_scene_soon();
    expect_others();
}

static void drive_deaths(void)
{
    sim_scene_deaths();
    expect_others();
}

/* Nobody is there until all times are over. */
static void drive_away(void)
{
    sim_broker_publish(0);
    sim_sleep(60 * WB_SECOND);
    sim_scene_soon();
    for (unsigned i = 0; i < sim_message_count; i++) {
        const sim_message *m = &sim_messages[i];
        if (may_expire(m) ? m->place != SIM_EXPIRED || m->runs : m->place != SIM_GONE)
            sim_violation("message %u (%s): a time to be received that is over counts for others, or not", i,
                          sim_fates[m->fate].name);
    }
}

const sim_scenario sim_scenarios_expiry[] = {
    { "expires", "times to be received, and what is sent on, with outbox", prepare_outbox, drive },
    { "expires_plain", "the same without outbox", prepare_plain, drive },
    { "expires_none", "the same with mode none", prepare_none, drive },
    { "expires_atomic", "the same in a transport transaction", prepare_atomic, drive },
    { "expires_scope", "the same in transaction_scope", prepare_scope, drive },
    { "expires_deaths", "and with processes that die", prepare_deaths, drive_deaths },
    { "expires_away", "nobody is there for a minute", prepare_outbox, drive_away },
    { NULL, NULL, NULL, NULL },
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/shape.h"

#include <waybill/sys/plugin.h>

#include "tests/simulation/random.h"
#include "tests/simulation/verdict.h"

sim_shape the_shape;

int sim_shape_has(sim_fate fate)
{
    for (unsigned i = 0; i < the_shape.fate_count; i++)
        if (the_shape.fates[i] == fate)
            return 1;
    return 0;
}

int sim_shape_allows(sim_fate fate)
{
    const sim_shape *s = &the_shape;
    unsigned flags = sim_fates[fate].flags;
    if ((fate == SIM_KILLER && sim_shape_has(SIM_ENDS)) || (fate == SIM_ENDS && sim_shape_has(SIM_KILLER)))
        return 0; /* the process that would make it good is no more */
    /* What stays in hand for ever, since there is no place else, counts each end of a process. */
    if (flags & SIM_STAYS && !s->outbox && s->delivery_limit)
        return 0;
    if ((flags & SIM_NEEDS_STORAGE && !s->persistence) || (flags & SIM_NEEDS_CHECK && !s->has_check) ||
        (flags & SIM_NEEDS_RETRIES && !s->retries) ||
        (flags & SIM_NEEDS_TRANSPORT_TRANSACTION && s->mode < WB_MODE_SENDS_ATOMIC))
        return 0;
    if ((flags & SIM_NEEDS_STORE && !s->store) ||
        (flags & SIM_NEEDS_DELAYS && !s->store && !s->native) ||
        (flags & SIM_NEEDS_DELAYED_RETRIES && !s->delayed_retries))
        return 0;
    if (fate == SIM_CLOSES && s->mode != WB_MODE_TRANSACTION_SCOPE)
        return 0; /* where it is the persistence's, that is a lost session (SIM_CUTS) */
    if (fate == SIM_BULKY && !s->error_size_max)
        return 0;
    if ((fate == SIM_NO_HANDLER || fate == SIM_NO_TYPE) && s->has_other)
        return 0;
    if (fate == SIM_LARGE_BODY && s->error_size_max)
        return 0; /* nothing of it can be trimmed */
    if (fate == SIM_SESSION || fate == SIM_SESSION_CONTROL || fate == SIM_WRITTEN)
        return 0; /* no messages of a queue's */
    if (fate == SIM_DELAYS_SILENT)
        return 0; /* it answers when somebody heals it */
    if (fate == SIM_LATE_IMMEDIATE)
        return 0; /* nobody can tell that it is not the broker who ends all these connections */
    /* It takes up to ten connections of a process to find what ends them, and each is a delivery. */
    if (flags & SIM_CUTS_BROKER && s->delivery_limit)
        return 0;
    if ((fate == SIM_POISON_MOVE || fate == SIM_DEADLY_IMMEDIATE) && !s->outbox && s->processes > 1)
        return 0;
    /* What a handler ended by itself is made good by the process it was in, and without an outbox
     * by nobody. */
    return !(flags & SIM_HARMS_OTHERS) ||
           (!(s->fault_permille && (!s->outbox || s->fatal_permille || s->stops)) && !s->deaths &&
            !s->outages && s->mode == WB_MODE_RECEIVE_ONLY);
}

void sim_shape_plain(int mode, int outbox)
{
    the_shape = (sim_shape){
        .mode = mode,
        .persistence = mode != WB_MODE_NONE,
        .outbox = outbox,
        .endpoints = 1,
        .processes = 1,
        .workers = 1,
        .retries = mode == WB_MODE_NONE ? 0 : 3,
        .batch_max = 16,
        .lot = 4,
        .with_commit = 1,
        .batch_time = 20 * WB_MILLISECOND,
        .pushes = 1,
        .has_prefetch = 1,
        .has_stop_receiving = 1,
        .has_release = 1,
        .has_check = 1,
        .has_clock = 1,
        .has_next_pending = 1,
        .has_take = 1,
        .keepers = outbox,
        .keeper_interval = 10 * WB_SECOND,
        .sweep_after = 5 * WB_SECOND,
        .retention = 3600 * WB_SECOND,
        .messages = 20,
        .rare_max = 3,
        .switching = 50,
        .steps_max = 400000,
    };
}

static void draw_plugins(sim_shape *s)
{
    s->persistence = s->mode == WB_MODE_TRANSACTION_SCOPE || sim_chance(75);
    s->outbox = s->mode == WB_MODE_RECEIVE_ONLY && s->persistence && sim_chance(70);
    s->apart = s->outbox && sim_chance(25);
    s->pushes = sim_chance(70);
    s->puts_off = !s->pushes;
    s->has_prefetch = s->pushes && sim_chance(80);
    s->has_stop_receiving = sim_chance(70);
    s->has_release = s->pushes && sim_chance(70);
    s->has_check = sim_chance(75);
    s->has_clock = sim_chance(70);
    s->has_next_pending = sim_chance(70);
    s->error_size_max = sim_chance(50) ? 6000 : 0;
    s->store = s->mode != WB_MODE_SENDS_ATOMIC && s->persistence && s->has_clock && sim_chance(50);
    s->native = !s->store && sim_chance(35);
    s->refuses_delays = s->native && sim_chance(25);
    if (s->mode != WB_MODE_NONE && (s->store || s->native) && sim_chance(60))
        s->delayed_retries = 1 + sim_random(3);
}

static void draw_work(sim_shape *s)
{
    s->endpoints = 1 + sim_chance(30);
    s->processes = 1 + sim_chance(30);
    s->workers = 1 + sim_random(3);
    s->retries = s->mode == WB_MODE_NONE ? 0 : sim_random(5);
    s->batch_max = 1 + sim_random(24);
    s->batch_time = sim_chance(80) ? 20 * WB_MILLISECOND : 0;
    s->keepers = s->outbox && sim_chance(85);
    s->keeper_interval = sim_random_between(2, 30) * WB_SECOND;
    s->sweep_after = sim_random_between(1, 20) * WB_SECOND;
    s->foreign_rows = s->outbox && sim_chance(20);
    s->messages = 20 + sim_random(40);
    /* what they caused is sent though they do not come again: by who sweeps */
    s->expires = (!s->outbox || s->keepers) && sim_chance(40);
    s->expire_percent = s->expires ? sim_random(60) : 0;
    s->copies_percent = sim_chance(60) ? sim_random(25) : 0;
    s->batch_percent = sim_chance(50) ? sim_random(101) : 0;
}

/* Without a sweeper what a dead process left is sent by who gets the control message. */
static void draw_sessions(sim_shape *s)
{
    if (!s->outbox || !sim_chance(40))
        return;
    s->programs = 1 + sim_random(3);
    s->session_connections = 1 + sim_random(s->programs);
    s->sessions = 10 + sim_random(30);
    s->sends_control = !s->keepers || sim_chance(60);
    s->commit_duration = sim_random_between(1, 15) * WB_SECOND;
    s->delay_increment = sim_random_between(100, 2000) * WB_MILLISECOND;
    s->late_percent = sim_chance(50) ? sim_random(40) : 0;
}

static void draw_written(sim_shape *s)
{
    if (!s->outbox || s->delivery_limit || !sim_chance(40))
        return;
    s->writers = 1 + sim_random(3);
    s->rows = 10 + sim_random(60);
    s->keys = sim_random(5);
    s->dear_looks = sim_chance(50);
}

static void draw_trouble(sim_shape *s)
{
    static const unsigned faults[] = { 0, 0, 2, 10, 30, 60 };
    s->fault_permille = faults[sim_random(6)];
    s->fatal_permille = sim_chance(40) ? sim_random(60) : 0;
    s->outages = sim_chance(40) ? 1 + sim_random(3) : 0;
    s->deaths = sim_chance(50) ? 1 + sim_random(6) : 0;
    s->stops = sim_chance(50) ? 1 + sim_random(4) : 0;
    /* what a broker delays it is told by the host's clock */
    s->jumps = s->has_clock && !s->native && sim_chance(30) ? 1 + sim_random(3) : 0;
    s->delivery_limit = sim_chance(15) ? (uint32_t[]){ 20, 7, 5, 3 }[sim_random(4)] : 0;
    s->notices_late = sim_chance(30) ? sim_random_between(10, 3000) * WB_MILLISECOND : 0;
}

static void draw_fates(sim_shape *s)
{
    unsigned wanted = sim_random(7);
    s->fate_percent = sim_random(40);
    /* it is allowed so seldom that chance would hardly ever choose it */
    if (sim_shape_allows(SIM_ENDS) && sim_chance(40))
        s->fates[s->fate_count++] = SIM_ENDS;
    s->ends_trouble = sim_chance(50);
    if (s->store || s->native)
        s->fates[s->fate_count++] = SIM_DELAYS;
    if (s->delayed_retries)
        s->fates[s->fate_count++] = sim_chance(50) ? SIM_RECOVERS : SIM_FAILING;
    while (s->fate_count < wanted) {
        sim_fate fate = (sim_fate)(1 + sim_random(SIM_FATES - 1));
        if (sim_shape_allows(fate))
            s->fates[s->fate_count++] = fate;
    }
}

/* A broker that drops what came back too often leaves no room for much of that: what happens
 * there must be less than our own limit forgives the innocent. */
static void respect_limit(sim_shape *s)
{
    s->tells_limit = s->delivery_limit != 0;
    if (!s->delivery_limit)
        return;
    if (s->retries + 2 > s->delivery_limit)
        s->retries = s->delivery_limit - 2;
    s->endpoints = 1;
    s->has_prefetch = s->pushes;
    s->has_stop_receiving = 1;
    s->fault_permille = 0;
    s->outages = 0;
    s->deaths = s->delivery_limit > 3;
    s->rare_max = s->delivery_limit > 3;
}

void sim_shape_draw(int mode)
{
    sim_shape_plain(mode, 0);
    draw_plugins(&the_shape);
    draw_work(&the_shape);
    draw_sessions(&the_shape);
    draw_trouble(&the_shape);
    respect_limit(&the_shape);
    the_shape.has_other = sim_chance(30);
    if (the_shape.delivery_limit != 3) /* there is no room for anything beside orderly stops */
        draw_fates(&the_shape);
    the_shape.switching = 5 + sim_random(95);
    the_shape.audits = sim_chance(30);
    the_shape.rate_after = sim_chance(25) ? 2 + sim_random(8) : 0;
    the_shape.rate_wait = sim_random_between(10, 300) * WB_MILLISECOND;
    the_shape.with_commit = sim_chance(60);
    the_shape.lot = sim_chance(70) ? 1 + sim_random(6) : 0;
    the_shape.has_take = sim_chance(70);
    draw_written(&the_shape);
}

void sim_shape_tell(void)
{
    const sim_shape *s = &the_shape;
    sim_tell("mode %d persistence %d outbox %d endpoints %u processes %u workers %u retries %u batch_max %u",
             s->mode, s->persistence, s->outbox, s->endpoints, s->processes, s->workers, s->retries,
             s->batch_max);
    sim_tell("pushes %d puts_off %d prefetch %d stop_receiving %d release %d check %d clock %d next_pending %d take %d limit %u "
             "error_size %u keepers %d",
             s->pushes, s->puts_off, s->has_prefetch, s->has_stop_receiving, s->has_release, s->has_check, s->has_clock,
             s->has_next_pending, s->has_take, s->delivery_limit, s->error_size_max, s->keepers);
    sim_tell("positions %d, keys %u, rebalances %u of 1000, apart %d, has_other %d", s->positions, s->incoming_keys,
             s->rebalance_permille, s->apart, s->has_other);
    sim_tell("expires %d, %u of 100", s->expires, s->expire_percent);
    sim_tell("notices_late %d ms audits %d rate_limit %u %d ms", (int)(s->notices_late / WB_MILLISECOND), s->audits,
             s->rate_after, (int)(s->rate_wait / WB_MILLISECOND));
    sim_tell("store %d with the commit %d lot %zu native %d refuses_delays %d delayed_retries %u", s->store,
             s->with_commit, s->lot, s->native, s->refuses_delays, s->delayed_retries);
    sim_tell("programs %u connections %u sessions %u control %d commit %d ms late %u of 100", s->programs,
             s->session_connections, s->sessions, s->sends_control, (int)(s->commit_duration / WB_MILLISECOND),
             s->late_percent);
    sim_tell("writers %u rows %u keys %u dear %d", s->writers, s->rows, s->keys, s->dear_looks);
    sim_tell("faults %u fatal %u outages %u deaths %u stops %u jumps %u messages %u copies %u", s->fault_permille,
             s->fatal_permille, s->outages, s->deaths, s->stops, s->jumps, s->messages, s->copies_percent);
    for (unsigned i = 0; i < s->fate_count; i++)
        sim_tell("fate %s", sim_fates[s->fates[i]].name);
}

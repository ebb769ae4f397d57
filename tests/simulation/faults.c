/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/faults.h"

#include "core/base/error.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* A way to fail, and whether it may be taken for the fault of the messages at hand. */
typedef struct {
    sim_fault fault;
    int strikes;
} way;

#define LOST { { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 }, 1 }
#define LOST_REPLY { { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 1 }, 1 }
#define DOUBT { { WB_IN_DOUBT, WB_CAUSE_UNREACHABLE, 0 }, 1 }
#define DOUBT_DONE { { WB_IN_DOUBT, WB_CAUSE_UNREACHABLE, 1 }, 1 }
#define DEADLOCK { { WB_ABORT, WB_CAUSE_OTHER, 0 }, 0 }
#define ABORTED { { WB_ABORT, WB_CAUSE_OTHER, 0 }, 1 } /* after the database has committed */
#define SERVER { { WB_RETRY, WB_CAUSE_SERVER, 0 }, 0 }
#define AGAIN { { WB_RETRY, WB_CAUSE_OTHER, 0 }, 1 }
#define REFUSED { { WB_FATAL, WB_CAUSE_REFUSED, 0 }, 1 } /* perhaps by what a handler did */
#define NONE { { WB_OK, 0, 0 }, 0 }
/* Sending alone failed; the session lives. */
#define SILENCE { { WB_IN_DOUBT, WB_CAUSE_SENDING, 0 }, 0 }
#define SILENCE_DONE { { WB_IN_DOUBT, WB_CAUSE_SENDING, 1 }, 0 }
#define WAYS 7

static const way ways[SIM_CALLS][WAYS] = {
    [SIM_CALL_OPEN_TRANSPORT] = { LOST, LOST },
    [SIM_CALL_RECEIVE] = { LOST },
    [SIM_CALL_ACKNOWLEDGE] = { LOST, LOST_REPLY },
    [SIM_CALL_ACKNOWLEDGE_INSIDE] = { LOST, LOST_REPLY, AGAIN, SERVER, REFUSED },
    [SIM_CALL_SEND] = { LOST, LOST_REPLY, DOUBT, DOUBT_DONE, AGAIN, SILENCE, SILENCE_DONE },
    [SIM_CALL_TRANSPORT_BEGIN] = { LOST },
    [SIM_CALL_TRANSPORT_COMMIT] = { LOST, DOUBT, DOUBT_DONE, ABORTED, AGAIN },
    [SIM_CALL_TRANSPORT_OTHER] = { LOST },
    [SIM_CALL_OPEN_STORAGE] = { LOST, SERVER },
    [SIM_CALL_BEGIN] = { LOST, DEADLOCK, SERVER, AGAIN },
    [SIM_CALL_STATEMENT] = { LOST, SERVER, DEADLOCK },
    [SIM_CALL_COMMIT] = { LOST, DOUBT, DOUBT_DONE, DEADLOCK, SERVER },
    [SIM_CALL_ROLLBACK] = { LOST },
    [SIM_CALL_MARK] = { LOST, LOST_REPLY, SERVER },
    [SIM_CALL_LOOK] = { LOST, SERVER },
    [SIM_CALL_REMEMBER] = { LOST, LOST_REPLY, DOUBT, DOUBT_DONE, DEADLOCK, SERVER },
    [SIM_CALL_DELAYED] = { LOST, LOST_REPLY, DOUBT, DOUBT_DONE, DEADLOCK, SERVER },
};

static const sim_fault fatal = { WB_FATAL, WB_CAUSE_REFUSED, 0 };
static int is_storming;
static int64_t outages[SIM_OUTAGES];

static way draw_way(sim_call call)
{
    unsigned count = 0;
    while (count < WAYS && ways[call][count].fault.result != WB_OK)
        count++;
    return ways[call][sim_random(count)];
}

static way no_way(void)
{
    return (way)NONE;
}

static int is_transports(sim_call call)
{
    return call <= SIM_CALL_TRANSPORT_OTHER;
}

/* Everybody meets an outage, so nobody can take it for the fault of a message. */
static way meet_outage(sim_call call)
{
    if (sim_outage_is_on(SIM_BROKER_DOWN) && is_transports(call))
        return (way){ { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 }, 0 };
    if (sim_outage_is_on(SIM_DATABASE_DOWN) && !is_transports(call))
        return (way){ { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 }, 0 };
    if (sim_outage_is_on(SIM_BROKER_SILENT) && call == SIM_CALL_SEND)
        return (way)SILENCE;
    if (sim_outage_is_on(SIM_SENDS_BREAK) && call == SIM_CALL_SEND)
        return (way){ { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 }, 0 };
    if ((sim_outage_is_on(SIM_ACKNOWLEDGE_REFUSED) && call == SIM_CALL_ACKNOWLEDGE_INSIDE) ||
        (sim_outage_is_on(SIM_TRANSPORT_COMMIT_REFUSED) && call == SIM_CALL_TRANSPORT_COMMIT))
        return (way)AGAIN;
    if (sim_outage_is_on(SIM_ACKNOWLEDGE_FORBIDDEN) && call == SIM_CALL_ACKNOWLEDGE_INSIDE)
        return (way)REFUSED;
    if (sim_outage_is_on(SIM_STATEMENTS_FULL) && call == SIM_CALL_STATEMENT)
        return (way){ { WB_RETRY, WB_CAUSE_SERVER, 0 }, 0 };
    if (sim_outage_is_on(SIM_STATEMENTS_BREAK) && call == SIM_CALL_STATEMENT)
        return (way){ { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 }, 0 };
    if (sim_outage_is_on(SIM_COMMITS_BREAK) && call == SIM_CALL_COMMIT)
        return (way){ { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 }, 0 };
    if (sim_outage_is_on(SIM_DELAYED_BREAKS) && call == SIM_CALL_DELAYED)
        return (way){ { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 }, 0 };
    if (sim_outage_is_on(SIM_MARKS_LOST) && call == SIM_CALL_MARK)
        return (way){ { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 1 }, 0 };
    if (sim_outage_is_on(SIM_DISK_FULL) && (call == SIM_CALL_COMMIT || call == SIM_CALL_STATEMENT || call == SIM_CALL_DELAYED))
        return (way){ { WB_RETRY, WB_CAUSE_SERVER, 0 }, 0 };
    return no_way();
}

static way draw(sim_call call)
{
    way met = meet_outage(call);
    if (met.fault.result != WB_OK || !is_storming || sim_random(1000) >= the_shape.fault_permille)
        return met;
    if (sim_random(1000) < the_shape.fatal_permille)
        /* it may be taken for a handler's doing; so may a transport's, on a connection that they share */
        return (way){ fatal, call >= SIM_CALL_BEGIN || the_shape.mode == WB_MODE_TRANSACTION_SCOPE };
    return draw_way(call);
}

unsigned sim_fault_strikes(sim_call call, unsigned usual)
{
    return call == SIM_CALL_DELAYED && the_shape.mode == WB_MODE_NONE ? 1 : usual;
}

sim_fault sim_fault_draw(sim_call call)
{
    way drawn = draw(call);
    if (drawn.fault.result == WB_OK)
        return drawn.fault;
    sim_broker_excuse_hand(NULL, sim_fault_strikes(call, (unsigned)drawn.strikes));
    return drawn.fault;
}

int sim_fault_fail(wb_error *error, sim_fault fault, const char *text)
{
    sim_tell("%s: %s", text, wb_result_name(fault.result));
    return wb_error_set(error, fault.result, fault.cause, 0, "%s", text);
}

void sim_faults_storm(int on)
{
    is_storming = on;
    for (int i = 0; i < SIM_OUTAGES && !on; i++)
        outages[i] = 0;
}

int sim_faults_are_on(void)
{
    return is_storming;
}

void sim_outage_start(sim_outage outage, int64_t until)
{
    outages[outage] = until;
}

int sim_outage_is_on(sim_outage outage)
{
    return outages[outage] > sim_now();
}

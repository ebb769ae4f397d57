/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/depths.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/alarm.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/endpoint/rest.h"

#define ASK_EVERY (15 * WB_SECOND)
/* When it is told to end, a broker that is asked has so long to answer. */
#define LAST_ANSWER (1 * WB_SECOND)
#define LOOK_EVERY (10 * WB_MILLISECOND)

typedef struct {
    const wb_endpoint_setup *setup;
    wb_endpoint *probe; /* never started; NULL: its transport cannot tell */
    _Atomic uint64_t messages;
    atomic_int is_known;
    int is_told; /* a line said why it is not */
} place;

struct cli_depths {
    pthread_t thread;
    wb_alarm alarm; /* rung at the end */
    atomic_int stop;
    atomic_int has_ended;
    size_t count;
    place places[];
};

static void note_unknown(place *one, const wb_error *error)
{
    atomic_store(&one->is_known, 0);
    if (!one->is_told)
        wb_log_event(WB_LOG_INFO, "how many messages wait in the queue is not known", { "endpoint", one->setup->config->name },
                     { "reason", error->text });
    one->is_told = 1;
}

static void ask_for(place *one)
{
    wb_transport_depth depth;
    wb_error error = { 0 };
    if (wb_rest_count_waiting(one->probe, &depth, &error) != WB_OK) {
        note_unknown(one, &error);
        return;
    }
    atomic_store(&one->messages, depth.messages);
    atomic_store(&one->is_known, depth.is_installed != 0);
    one->is_told = 0;
}

static void *ask(void *argument)
{
    cli_depths *depths = argument;
    while (!depths->stop) {
        for (size_t i = 0; i < depths->count && !depths->stop; i++)
            if (depths->places[i].probe)
                ask_for(&depths->places[i]);
        wb_alarm_sleep(&depths->alarm, 0, ASK_EVERY);
    }
    atomic_store(&depths->has_ended, 1);
    return NULL;
}

/* @return whether its transport can tell, and there is something to be told of. */
static int make_place(place *one, const wb_endpoint_setup *setup)
{
    wb_error ignored = { 0 };
    one->setup = setup;
    if (setup->plan.send_only || !WB_HAS(setup->transport_ops, wb_transport_ops, depth) ||
        wb_endpoint_create(setup, &one->probe, &ignored) != WB_OK)
        one->probe = NULL;
    return one->probe != NULL;
}

static void discard(cli_depths *depths)
{
    for (size_t i = 0; i < depths->count; i++)
        wb_endpoint_destroy(depths->places[i].probe);
    wb_alarm_free(&depths->alarm);
    free(depths);
}

cli_depths *cli_depths_begin(const cli_hosted *hosted, size_t count)
{
    cli_depths *depths = wb_alloc_zero(1, sizeof *depths + count * sizeof *depths->places);
    size_t tellers = 0;
    depths->count = count;
    wb_alarm_init(&depths->alarm);
    for (size_t i = 0; i < count; i++)
        tellers += (size_t)make_place(&depths->places[i], hosted[i].setup);
    if (tellers && pthread_create(&depths->thread, NULL, ask, depths) == 0)
        return depths;
    discard(depths);
    return NULL;
}

int cli_depths_of(const cli_depths *depths, size_t number, uint64_t *ret_messages)
{
    if (!depths || !atomic_load(&depths->places[number].is_known))
        return 0;
    *ret_messages = atomic_load(&depths->places[number].messages);
    return 1;
}

int cli_depths_end(cli_depths *depths)
{
    if (!depths)
        return 1;
    const int64_t until = wb_clock_monotonic() + LAST_ANSWER;
    atomic_store(&depths->stop, 1);
    wb_alarm_ring(&depths->alarm);
    while (!atomic_load(&depths->has_ended) && wb_clock_monotonic() < until)
        wb_clock_pause(LOOK_EVERY, NULL);
    if (!atomic_load(&depths->has_ended))
        return 0;
    pthread_join(depths->thread, NULL);
    discard(depths);
    return 1;
}

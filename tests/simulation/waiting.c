/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/recover/retry_copy.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* Of a hundred that wait so many are handed on twice while it storms. */
#define TWICE_PERCENT 3

typedef struct waiting {
    wb_operation operation;
    int64_t due; /* monotonic */
    struct waiting *next;
} waiting;

static waiting *first; /* earliest due first */
static size_t count;
static int is_running;

static int is_due(void *argument)
{
    (void)argument;
    return first && first->due <= sim_now();
}

typedef struct {
    const waiting *seen;
} look;

/* Something is due, or another one is first. */
static int has_changed(void *argument)
{
    return is_due(NULL) || first != ((const look *)argument)->seen;
}

static void hand_on(void)
{
    waiting *one = first;
    first = one->next;
    count--;
    sim_ledger_send(&one->operation);
    if (sim_faults_are_on() && the_shape.fault_permille && the_shape.mode == WB_MODE_RECEIVE_ONLY &&
        sim_chance(TWICE_PERCENT))
        sim_ledger_send(&one->operation);
    sim_operation_free(&one->operation);
    free(one);
}

static void *run(void *argument)
{
    (void)argument;
    for (;;) {
        look seen = { first };
        (void)sim_wait("what is due", first ? first->due : WB_NEVER, has_changed, &seen);
        while (is_due(NULL))
            hand_on();
    }
    return NULL;
}

void sim_waiting_add(const wb_operation *operation, int64_t delay)
{
    waiting *one = calloc(1, sizeof *one), **at = &first;
    if (!one)
        abort();
    *one = (waiting){ .operation = sim_operation_copy(operation), .due = sim_now() + delay };
    while (*at && (*at)->due <= one->due)
        at = &(*at)->next;
    one->next = *at;
    *at = one;
    count++;
    sim_tell("waits at the broker for %.3f s, for %s", (double)delay / 1e9, operation->destination);
    if (is_running)
        return;
    is_running = 1;
    (void)sim_spawn(SIM_NO_PROCESS, "broker", run, NULL);
}

size_t sim_waiting_count(void)
{
    return count;
}

static int is_for_endpoint(const wb_operation *operation)
{
    return strncmp(operation->destination, "endpoint-", 9) == 0;
}

static int has_id(const wb_operation *operation, const sim_message *m)
{
    return is_for_endpoint(operation) && operation->id_size == m->id_size &&
           memcmp(operation->id, m->id, m->id_size) == 0;
}

int sim_waiting_has_id(const sim_message *m)
{
    for (const waiting *one = first; one; one = one->next)
        if (has_id(&one->operation, m))
            return 1;
    return 0;
}

int sim_waiting_has_retry(const sim_message *m)
{
    for (const waiting *one = first; one; one = one->next)
        if (has_id(&one->operation, m) &&
            wb_recover_retries(one->operation.headers, one->operation.header_count) == m->level + 1)
            return 1;
    return 0;
}

int sim_waiting_holds(const sim_message *m, int label)
{
    unsigned number;
    int own;
    for (const waiting *one = first; one; one = one->next)
        if (sscanf(one->operation.body, "%u/%d/", &number, &own) == 2 && number == m->twin && own == label)
            return 1;
    return 0;
}

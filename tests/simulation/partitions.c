/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/partitions.h"

#include <string.h>

#include "tests/simulation/audit.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* Then it is calm. */
#define REBALANCES_MAX 100
/* So many of the last acknowledged come again, at most: their acknowledgement was not written. */
#define AGAIN_MAX 4
#define KEYS 6

typedef struct {
    const wb_transport_session *owner;
    uint64_t end;
} partition;

static unsigned rebalances;
static partition all[SIM_ENDPOINTS_MAX][SIM_PARTITIONS];
static const char *const names[SIM_PARTITIONS] = { "queue/0", "queue/1", "queue/2" };

const char *sim_partition_name(unsigned number)
{
    return names[number];
}

unsigned sim_partition_find(const void *name, size_t size)
{
    unsigned i = 0;
    while (i < SIM_PARTITIONS && (strlen(names[i]) != size || memcmp(names[i], name, size) != 0))
        i++;
    return i;
}

int sim_has_partitions(void)
{
    return the_shape.positions || the_shape.incoming_keys;
}

/* ---- keys ---- */

/* A copy has the key of what it is a copy of. */
static unsigned key_of(const sim_message *m)
{
    return m->twin % KEYS;
}

static int has_key(const sim_message *m)
{
    return key_of(m) < the_shape.incoming_keys;
}

const char *sim_partition_key(const sim_message *m)
{
    static const char *const keys[KEYS] = { "key-0", "key-1", "key-2", "key-3", "key-4", "key-5" };
    return has_key(m) ? keys[key_of(m)] : "";
}

/* It has its effect, or will have none: it is in the error queue, or parked on its way there. */
static int is_done(const sim_message *m)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].twin == m->twin && sim_messages[i].commits)
            return 1;
    return m->place == SIM_GONE || m->place == SIM_EXPIRED || sim_messages[m->twin].moved || sim_audit_is_parked(m);
}

void sim_partition_check_order(const sim_message *m)
{
    for (unsigned i = 0; the_shape.incoming_keys && has_key(m) && i < sim_message_count; i++) {
        const sim_message *one = &sim_messages[i];
        if (one->endpoint == m->endpoint && has_key(one) && key_of(one) == key_of(m) && one->queued_at &&
            one->position < m->position && !is_done(one))
            sim_violation("message %u takes effect before message %u, which has its key and came earlier", m->number,
                          one->number);
    }
}

/* ---- places ---- */

/* With gaps, as what is compacted, and the ends of transactions, leave them. */
void sim_partition_place(sim_message *m)
{
    partition *p = &all[m->endpoint][m->partition = (has_key(m) ? key_of(m) : m->number) % SIM_PARTITIONS];
    p->end += m->number % 5 == 0 ? 3 : 0;
    m->position = p->end++;
}

static sim_message *find_first(unsigned endpoint, unsigned number)
{
    sim_message *found = NULL;
    for (unsigned i = 0; i < sim_message_count; i++) {
        sim_message *m = &sim_messages[i];
        if (m->place == SIM_QUEUED && m->endpoint == endpoint && m->partition == number &&
            (!found || m->position < found->position))
            found = m;
    }
    return found;
}

sim_message *sim_partition_next(const wb_transport_session *s)
{
    for (unsigned i = 0, from = sim_random(SIM_PARTITIONS); i < SIM_PARTITIONS; i++) {
        partition *p = &all[s->endpoint][(from + i) % SIM_PARTITIONS];
        sim_message *m = !p->owner || p->owner == s ? find_first(s->endpoint, (from + i) % SIM_PARTITIONS) : NULL;
        if (!m)
            continue;
        p->owner = s;
        return m;
    }
    return NULL;
}

void sim_partition_leave(const wb_transport_session *s)
{
    for (unsigned i = 0; i < SIM_PARTITIONS; i++)
        if (all[s->endpoint][i].owner == s)
            all[s->endpoint][i].owner = NULL;
}

/* ---- a rebalance ---- */

static int was_settled(const sim_message *m, unsigned endpoint, unsigned number)
{
    return m->place == SIM_GONE && m->endpoint == endpoint && m->partition == number && m->queued_at;
}

/* One that failed would be moved once more, as it may be. */
static sim_message *find_last_gone(unsigned endpoint, unsigned number, uint64_t below)
{
    sim_message *found = NULL;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (was_settled(&sim_messages[i], endpoint, number) && sim_messages[i].position < below &&
            (!found || sim_messages[i].position > found->position))
            found = &sim_messages[i];
    return found && !sim_messages[found->twin].moved && !(sim_fates[found->fate].flags & (SIM_MAY_FAIL | SIM_IGNORED)) ? found : NULL;
}

static void come_again(unsigned endpoint, unsigned number)
{
    uint64_t below = UINT64_MAX;
    sim_message *m;
    for (unsigned left = sim_random(AGAIN_MAX + 1); left && (m = find_last_gone(endpoint, number, below)); left--) {
        below = m->position;
        m->place = SIM_QUEUED;
        m->delivery_count++;
        m->excuses++;
    }
}

void sim_partition_rebalance(void)
{
    unsigned endpoint = sim_random(the_shape.endpoints), number = sim_random(SIM_PARTITIONS);
    if (rebalances >= REBALANCES_MAX || sim_random(1000) >= the_shape.rebalance_permille)
        return;
    rebalances++;
    sim_tell("partition %u of endpoint %u is taken away", number, endpoint);
    if (all[endpoint][number].owner)
        sim_broker_take_away(endpoint, number);
    all[endpoint][number].owner = NULL;
    come_again(endpoint, number);
}

uint64_t sim_partition_end(unsigned endpoint, unsigned number)
{
    return all[endpoint][number].end;
}

void sim_partition_make_anew(void)
{
    for (unsigned i = 0; i < SIM_ENDPOINTS_MAX; i++)
        for (unsigned k = 0; k < SIM_PARTITIONS; k++)
            all[i][k].end = 0;
}

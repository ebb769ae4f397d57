/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/recover/suspicions.h"

#include <string.h>

/* FNV-1a. Two ids with one hash share a suspicion: one of them is sent alone for nothing. */
static uint64_t hash_of(const void *id, size_t size)
{
    const unsigned char *bytes = id;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash ? hash : 1;
}

void wb_suspicions_init(wb_suspicions *s)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
}

void wb_suspicions_free(wb_suspicions *s)
{
    pthread_mutex_destroy(&s->lock);
}

static wb_suspicion *find(wb_suspicions *s, uint64_t hash)
{
    for (size_t i = 0; i < WB_SUSPICIONS_MAX; i++)
        if (s->table[i].hash == hash)
            return &s->table[i];
    return NULL;
}

static wb_suspicion *find_or_add(wb_suspicions *s, uint64_t hash)
{
    wb_suspicion *found = find(s, hash);
    if (found)
        return found;
    found = find(s, 0);
    if (found)
        atomic_fetch_add(&s->count, 1);
    else
        found = &s->table[s->next++ % WB_SUSPICIONS_MAX];
    *found = (wb_suspicion){ .hash = hash, .asked = wb_clock_monotonic() };
    return found;
}

static void forget(wb_suspicions *s, wb_suspicion *suspicion)
{
    *suspicion = (wb_suspicion){ 0 };
    atomic_fetch_sub(&s->count, 1);
}

/* Now and then: the table is small, and a look at all of it is what each question costs. */
static void sweep(wb_suspicions *s, int64_t now)
{
    if (now - s->swept < WB_SUSPICIONS_KEPT / 24)
        return;
    s->swept = now;
    for (size_t i = 0; i < WB_SUSPICIONS_MAX; i++)
        if (s->table[i].hash && now - s->table[i].asked > WB_SUSPICIONS_KEPT)
            forget(s, &s->table[i]);
}

/* A copy of what is known of an id; nothing when it is not there. */
static wb_suspicion look_up(wb_suspicions *s, const void *id, size_t size)
{
    wb_suspicion known = { 0 };
    if (!atomic_load_explicit(&s->count, memory_order_relaxed))
        return known;
    int64_t now = wb_clock_monotonic();
    pthread_mutex_lock(&s->lock);
    sweep(s, now);
    wb_suspicion *found = find(s, hash_of(id, size));
    if (found) {
        found->asked = now;
        known = *found;
    }
    pthread_mutex_unlock(&s->lock);
    return known;
}

void wb_suspicions_add(wb_suspicions *s, const void *id, size_t size)
{
    pthread_mutex_lock(&s->lock);
    (void)find_or_add(s, hash_of(id, size));
    pthread_mutex_unlock(&s->lock);
}

void wb_suspicions_forget(wb_suspicions *s, const void *id, size_t size)
{
    if (!atomic_load_explicit(&s->count, memory_order_relaxed))
        return;
    pthread_mutex_lock(&s->lock);
    wb_suspicion *found = find(s, hash_of(id, size));
    if (found)
        forget(s, found);
    pthread_mutex_unlock(&s->lock);
}

int wb_suspicions_has(wb_suspicions *s, const void *id, size_t size)
{
    return look_up(s, id, size).hash != 0;
}

void wb_suspicions_count_death(wb_suspicions *s, const void *id, size_t size, int proved)
{
    pthread_mutex_lock(&s->lock);
    wb_suspicion *found = find_or_add(s, hash_of(id, size));
    if (proved)
        found->deaths++;
    else
        found->unproved++;
    found->died = wb_clock_monotonic();
    pthread_mutex_unlock(&s->lock);
}

static int64_t rest_of(const wb_suspicion *known)
{
    unsigned further = known->deaths > WB_DEATHS_MAX ? known->deaths - WB_DEATHS_MAX : 0;
    if (known->unproved > WB_DEATHS_UNPROVED_MAX)
        further += known->unproved - WB_DEATHS_UNPROVED_MAX;
    return wb_clock_backoff(WB_DEADLY_REST_FIRST, further, WB_DEADLY_REST_LONGEST);
}

int wb_suspicions_is_deadly(wb_suspicions *s, const void *id, size_t size, int for_ever)
{
    wb_suspicion known = look_up(s, id, size);
    return (known.deaths >= WB_DEATHS_MAX || known.unproved >= WB_DEATHS_UNPROVED_MAX) &&
           (for_ever || wb_clock_monotonic() - known.died < rest_of(&known));
}

unsigned wb_suspicions_deaths(wb_suspicions *s, const void *id, size_t size)
{
    wb_suspicion known = look_up(s, id, size);
    return known.deaths + known.unproved;
}

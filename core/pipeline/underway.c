/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/underway.h"

#include <stdlib.h>

#include "core/base/arena.h"

void wb_underway_init(wb_underway *u)
{
    *u = (wb_underway){ .count = 0 };
    pthread_mutex_init(&u->lock, NULL);
}

void wb_underway_free(wb_underway *u)
{
    free(u->entries);
    pthread_mutex_destroy(&u->lock);
}

static void add(wb_underway *u, wb_underway_entry entry)
{
    if (u->count == u->max) {
        u->max = u->max ? u->max * 2 : 16;
        u->entries = wb_realloc(u->entries, u->max * sizeof *u->entries);
    }
    u->entries[u->count++] = entry;
}

typedef int chosen(const wb_underway_entry *entry);

static int in_hand(const wb_underway_entry *entry) { return !entry->is_out; }
static int riding(const wb_underway_entry *entry) { return entry->rides; }
static int out(const wb_underway_entry *entry) { return entry->is_out; }
static int any(const wb_underway_entry *entry) { return entry->batch != 0; }

static void drop(wb_underway *u, const void *worker, chosen *which)
{
    size_t left = 0;
    for (size_t i = 0; i < u->count; i++)
        if (u->entries[i].worker != worker || !which(&u->entries[i]))
            u->entries[left++] = u->entries[i];
    u->count = left;
}

static void drop_locked(wb_underway *u, const void *worker, chosen *which)
{
    pthread_mutex_lock(&u->lock);
    drop(u, worker, which);
    pthread_mutex_unlock(&u->lock);
}

void wb_underway_begin(wb_underway *u, const void *worker, uint64_t batch)
{
    pthread_mutex_lock(&u->lock);
    drop(u, worker, in_hand);
    add(u, (wb_underway_entry){ .batch = batch, .worker = worker });
    pthread_mutex_unlock(&u->lock);
}

void wb_underway_is_out(wb_underway *u, const void *worker)
{
    pthread_mutex_lock(&u->lock);
    for (size_t i = 0; i < u->count; i++)
        if (u->entries[i].worker == worker)
            u->entries[i].is_out = 1;
    pthread_mutex_unlock(&u->lock);
}

void wb_underway_give_up(wb_underway *u, const void *worker)
{
    drop_locked(u, worker, in_hand);
}

void wb_underway_ride(wb_underway *u, const void *worker)
{
    pthread_mutex_lock(&u->lock);
    for (size_t i = 0; i < u->count; i++)
        if (u->entries[i].worker == worker)
            u->entries[i].rides |= u->entries[i].is_out;
    pthread_mutex_unlock(&u->lock);
}

void wb_underway_landed(wb_underway *u, const void *worker)
{
    drop_locked(u, worker, riding);
}

void wb_underway_marked(wb_underway *u, const void *worker)
{
    drop_locked(u, worker, out);
}

void wb_underway_drop(wb_underway *u, const void *worker)
{
    drop_locked(u, worker, any);
}

int wb_underway_has(wb_underway *u, const void *worker, uint64_t batch)
{
    int has = 0;
    pthread_mutex_lock(&u->lock);
    for (size_t i = 0; i < u->count; i++)
        has |= u->entries[i].batch == batch && u->entries[i].worker != worker;
    pthread_mutex_unlock(&u->lock);
    return has;
}

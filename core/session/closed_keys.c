/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/session/closed_keys.h"

#include <stdlib.h>

/* A key has one place, and drives out whoever has it. */
#define PLACES 4096

/* Two keys of one hash replace each other's records, which are not theirs: nothing is replaced then. */
struct wb_closed_key {
    uint64_t hash, number;
};

/* FNV-1a; http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t hash_of(const void *id, size_t size)
{
    const unsigned char *bytes = id;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

void wb_closed_keys_init(wb_closed_keys *keys)
{
    *keys = (wb_closed_keys){ .keys = NULL };
    pthread_mutex_init(&keys->lock, NULL);
}

void wb_closed_keys_free(wb_closed_keys *keys)
{
    free(keys->keys);
    pthread_mutex_destroy(&keys->lock);
}

void wb_closed_keys_note(wb_closed_keys *keys, const void *id, size_t size, uint64_t number)
{
    const uint64_t hash = hash_of(id, size);
    pthread_mutex_lock(&keys->lock);
    if (!keys->keys)
        keys->keys = calloc(PLACES, sizeof *keys->keys);
    if (keys->keys)
        keys->keys[hash % PLACES] = (struct wb_closed_key){ hash, number };
    pthread_mutex_unlock(&keys->lock);
}

uint64_t wb_closed_keys_find(wb_closed_keys *keys, const void *id, size_t size)
{
    const uint64_t hash = hash_of(id, size);
    pthread_mutex_lock(&keys->lock);
    const struct wb_closed_key *key = keys->keys ? &keys->keys[hash % PLACES] : NULL;
    uint64_t number = key && key->hash == hash ? key->number : 0;
    pthread_mutex_unlock(&keys->lock);
    return number;
}

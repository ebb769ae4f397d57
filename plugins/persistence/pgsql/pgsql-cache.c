/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/sql/prefix.h"

/* A text longer than this is data in disguise and will hardly come again. */
#define TEXT_MAX_SIZE ((size_t)16 * 1024)

static int is_same(const pgsql_cached *cached, const char *text, int count, const Oid *types)
{
    if (cached->count != count || !cached->types != !types)
        return 0;
    if (types && memcmp(cached->types, types, (size_t)count * sizeof *types) != 0)
        return 0;
    return strcmp(cached->text, text) == 0;
}

static pgsql_cached *find(pgsql_cache *cache, const char *text, int count, const Oid *types,
                          uint64_t *ret_hash)
{
    if (cache->count && is_same(&cache->entries[cache->latest], text, count, types))
        return &cache->entries[cache->latest];
    *ret_hash = wb_sql_hash(WB_SQL_HASH_START, text);
    for (size_t i = 0; i < cache->count; i++)
        if (cache->entries[i].hash == *ret_hash &&
            is_same(&cache->entries[i], text, count, types)) {
            cache->latest = i;
            return &cache->entries[i];
        }
    return NULL;
}

static void empty(pgsql_cached *cached)
{
    free(cached->text);
    free(cached->types);
    memset(cached, 0, sizeof *cached);
}

/* A free place, or that of the entry not used for longest, or NULL: all are in use. */
static pgsql_cached *make_room(pgsql_cache *cache)
{
    pgsql_cached *oldest = cache->entries;

    if (cache->count < PGSQL_CACHE_MAX)
        return &cache->entries[cache->count++];
    for (size_t i = 1; i < PGSQL_CACHE_MAX; i++)
        if (cache->entries[i].last_used < oldest->last_used)
            oldest = &cache->entries[i];
    if (oldest->last_used == cache->round ||
        (oldest->is_ready && cache->dropped_count == PGSQL_CACHE_MAX))
        return NULL;
    if (oldest->is_ready)
        memcpy(cache->dropped[cache->dropped_count++], oldest->name, sizeof oldest->name);
    empty(oldest);
    return oldest;
}

static pgsql_cached *add(pgsql_cache *cache, const char *text, int count, const Oid *types,
                         uint64_t text_hash)
{
    size_t types_size = types ? (size_t)count * sizeof *types : 0;
    char *text_copy = strdup(text);
    Oid *types_copy = types ? malloc(types_size ? types_size : 1) : NULL;
    pgsql_cached *cached = NULL;

    if (text_copy && (!types || types_copy))
        cached = make_room(cache);
    if (!cached) {
        free(text_copy);
        free(types_copy);
        return NULL;
    }
    if (types_size)
        memcpy(types_copy, types, types_size);
    cached->text = text_copy;
    cached->types = types_copy;
    cached->count = count;
    cached->hash = text_hash;
    cache->latest = (size_t)(cached - cache->entries);
    return cached;
}

pgsql_cached *pgsql_cache_use(pgsql_cache *cache, const char *text, int count, const Oid *types)
{
    uint64_t text_hash = 0;
    pgsql_cached *cached = find(cache, text, count, types, &text_hash);

    if (!cached && strnlen(text, TEXT_MAX_SIZE) < TEXT_MAX_SIZE)
        cached = add(cache, text, count, types, text_hash);
    if (cached) {
        cached->uses++;
        cached->last_used = cache->round;
    }
    return cached;
}

void pgsql_cache_next_round(pgsql_cache *cache)
{
    cache->round++;
}

void pgsql_cache_distrust(pgsql_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        cache->entries[i].is_ready = 0;
}

void pgsql_cache_name(pgsql_cache *cache, pgsql_cached *cached)
{
    (void)snprintf(cached->name, sizeof cached->name, "waybill_d%" PRIu64, ++cache->names_made);
}

void pgsql_cache_free(pgsql_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        empty(&cache->entries[i]);
    memset(cache, 0, sizeof *cache);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Deferred statements that come again are prepared once a session. The cache knows them
 * by text and parameter types; at its bound the one not used for longest makes room.
 * A statement is prepared when it is seen for the second time, so that texts made up for
 * a single use cost the server nothing.
 */
#ifndef PGSQL_CACHE_H
#define PGSQL_CACHE_H

#include <libpq-fe.h>
#include <stddef.h>
#include <stdint.h>

#include "plugins/persistence/pgsql/pgsql-guard.h"

#define PGSQL_CACHE_MAX 64
#define PGSQL_STATEMENT_NAME_SIZE 32

typedef struct pgsql_cached {
    char *text;
    Oid *types; /* NULL: all inferred */
    int count;
    pgsql_leaves leaves;
    uint64_t hash;
    uint64_t uses;
    uint64_t last_used; /* pgsql_cache.round */
    int is_sent;        /* being prepared in this exchange */
    int is_ready;       /* the server has it */
    char name[PGSQL_STATEMENT_NAME_SIZE];
} pgsql_cached;

/** All zero is empty. */
typedef struct pgsql_cache {
    pgsql_cached entries[PGSQL_CACHE_MAX];
    size_t count;
    size_t latest;  /* asked first: batches repeat one statement */
    uint64_t round; /* statements used in the current one are not evicted */
    uint64_t names_made;
    /** Names the server still has although their entries are gone. */
    char dropped[PGSQL_CACHE_MAX][PGSQL_STATEMENT_NAME_SIZE];
    size_t dropped_count;
} pgsql_cache;

/** Find or add. @return NULL when there is no room or no memory: send it unprepared. */
pgsql_cached *pgsql_cache_use(pgsql_cache *cache, const char *text, int count, const Oid *types);
/** Another batch begins: everything may be evicted, nothing is being prepared. */
void pgsql_cache_next_round(pgsql_cache *cache);
/** The server may have lost or outdated any of them: prepare all again, by new names. */
void pgsql_cache_distrust(pgsql_cache *cache);
/** Name a statement before it is prepared. */
void pgsql_cache_name(pgsql_cache *cache, pgsql_cached *cached);
void pgsql_cache_free(pgsql_cache *cache);

#endif

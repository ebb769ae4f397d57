/* SPDX-License-Identifier: Apache-2.0
 *
 * PostgreSQL for the hand-written loop: claim, business rows, pending row, commit in two
 * round trips a batch, and the mark that rides with the next batch. Any failure ends the
 * program (bench_die): nothing was acknowledged, the deduplication rows decide.
 *
 * A store is used by one thread.
 */
#ifndef BENCH_LOOP_STORE_H
#define BENCH_LOOP_STORE_H

#include "tests/bench/common.h"

#include <libpq-fe.h>

/** How business rows are written. */
enum bench_sql {
    BENCH_SQL_PLAIN,    /* one round trip a row */
    BENCH_SQL_DEFERRED, /* one statement a row, all with the commit's round trip */
    BENCH_SQL_BATCH     /* one statement a batch, with the commit's round trip */
};

/** The table of the handler's business data; shared with the handler modules. */
#define BENCH_ORDER_SCHEMA                                                                         \
    "create table if not exists bench_order (order_id text primary key, amount int4 not null,"     \
    " at timestamptz not null default clock_timestamp())"

struct bench_id {
    const char *data;
    size_t size;
};

struct bench_store {
    PGconn *db;
    enum bench_sql sql;
    struct bench_bytes keys;    /* bytea[] of the claim */
    struct bench_bytes orders;  /* text[] and int4[] of --sql batch */
    struct bench_bytes amounts;
    uint32_t order_count;
};

/** Make the tables of loop and handlers, empty. Addressed by PGHOST, PGPORT and so on. */
void bench_store_install(void);
void bench_store_open(struct bench_store *store, enum bench_sql sql);
void bench_store_close(struct bench_store *store);

/** Mark `done_batch` (0: none) in a transaction of its own that is not flushed, open the
 *  next one and claim `ids`, which are distinct and ascending. fresh[i] is set to 1 when
 *  ids[i] is now ours, 0 when it is a duplicate. One round trip. */
void bench_store_begin(struct bench_store *store, uint64_t done_batch, uint64_t batch,
                       const struct bench_id *ids, size_t count, unsigned char *fresh);
/** Write one business row, in the way of store->sql. */
void bench_store_order(struct bench_store *store, const struct bench_id *id, size_t amount);
/** Store the outgoing operations (none when size is 0) and commit. One round trip. */
void bench_store_commit(struct bench_store *store, uint64_t batch, const void *operations,
                        size_t size);
void bench_store_mark(struct bench_store *store, uint64_t batch);

/** What a killed process left pending: calls `send` for each row, then marks it. */
void bench_store_resume(struct bench_store *store,
                        void (*send)(void *argument, const void *operations, size_t size),
                        void *argument);

#endif

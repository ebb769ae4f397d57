/* SPDX-License-Identifier: Apache-2.0
 *
 * The database of a hand-written loop: claim, business rows, pending row, commit in two
 * round trips a batch, and the mark that rides with the next batch. Any failure ends the
 * program (bench_die): nothing was acknowledged, the deduplication rows decide.
 *
 * loop-pgsql.c and loop-mysql.c implement it; a program links one of them. A store is
 * used by one thread.
 */
#ifndef BENCH_LOOP_STORE_H
#define BENCH_LOOP_STORE_H

#include "tests/bench/common.h"

/** How business rows are written. */
enum bench_sql {
    BENCH_SQL_PLAIN,    /* one round trip a row */
    BENCH_SQL_DEFERRED, /* one statement a row, all with the commit's round trip */
    BENCH_SQL_BATCH     /* one statement a batch, with the commit's round trip */
};

struct bench_store;

/** Make the tables of loop and handlers, empty. Addressed by PGHOST, PGPORT and so on, or
 *  MYSQL_HOST, MYSQL_PORT and so on. */
void bench_store_install(void);
struct bench_store *bench_store_open(enum bench_sql sql);
void bench_store_close(struct bench_store *store);

/** Open a transaction and claim `ids`, which are distinct and ascending. fresh[i] is set to 1
 *  when ids[i] is now ours, 0 when it is a duplicate. Marks `done_batch` (0: none) as
 *  dispatched, with this transaction or beside it. One round trip.
 *  @return whether the mark is done already; otherwise bench_store_commit() does it. */
int bench_store_begin(struct bench_store *store, uint64_t done_batch, uint64_t batch,
                      const struct bench_text *ids, size_t count, unsigned char *fresh);
/** Write one business row, in the way the store was opened for. */
void bench_store_order(struct bench_store *store, const struct bench_text *id, size_t amount);
/** Store the outgoing operations (none when size is 0) and commit. One round trip. */
void bench_store_commit(struct bench_store *store, uint64_t batch, const void *operations,
                        size_t size);
void bench_store_mark(struct bench_store *store, uint64_t batch);

/** What a killed process left pending: calls `send` for each row, then marks it. */
void bench_store_resume(struct bench_store *store,
                        void (*send)(void *argument, const void *operations, size_t size),
                        void *argument);

#endif

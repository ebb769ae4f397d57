/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed messages of a hand-written loop, in a table of their own: fetched and removed a
 * thousand at a time. Any failure ends the program (bench_die), which gives back what was fetched.
 *
 * drain-pgsql.c and drain-mysql.c implement it; a program links one of them. A store is used by one
 * thread; several programs may drain one table, and none gets what another has.
 */
#ifndef BENCH_DRAIN_H
#define BENCH_DRAIN_H

#include "tests/bench/common.h"

struct drain_store;

/** Make the table, empty. Addressed as loop-store.h says. */
void drain_install(void);
struct drain_store *drain_open(void);
void drain_close(struct drain_store *store);

/** Add messages that are due now, in one transaction. */
void drain_put(struct drain_store *store, const struct bench_text *ids, const struct bench_text *operations,
               size_t count);
/** Open a transaction, take at most `max` that are due, earliest first, and delete them in it.
 *  `operations` point into the store until drain_done(). @return how many; 0: nothing is open. */
size_t drain_take(struct drain_store *store, struct bench_text *operations, size_t max);
/** What was taken has arrived: commit. */
void drain_done(struct drain_store *store);

#endif

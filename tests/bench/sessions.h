/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of the comparison of sessions: sessions-waybill.c, sessions-written.c or sessions-loop.c. A program links
 * one of them. Any failure ends the program (bench_die).
 */
#ifndef BENCH_SESSIONS_H
#define BENCH_SESSIONS_H

#include "tests/bench/common.h"

struct bench_sessions;
struct bench_caller;

struct bench_sessions_settings {
    const char *config;  /* Waybill's configuration file */
    int sends_control;   /* a control message before each commit; Waybill's file says that */
    const char *control; /* the queue that gets the loop's */
    const char *sink;
    const char *send; /* the name of the function that sessions-written.c calls */
    const char *key;  /* of all its messages; NULL: none */
    int keeps_record; /* the loop writes one of each session, as Waybill does */
    int is_deferred; /* business rows travel with the commit */
    unsigned callers;
};

struct bench_sessions *bench_sessions_open(const struct bench_sessions_settings *settings);
/** Everything that was committed is out when it returns. */
void bench_sessions_close(struct bench_sessions *sessions);

/** What one thread needs to commit. */
struct bench_caller *bench_caller_open(struct bench_sessions *sessions);
/** One business row and one message, both or neither. */
void bench_caller_commit(struct bench_caller *caller, const char *order_id, const void *body,
                         size_t body_size);
void bench_caller_close(struct bench_caller *caller);

#endif

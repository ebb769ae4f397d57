/* SPDX-License-Identifier: Apache-2.0
 *
 * A delayed message store and a transport in the test's own process: rows in an array, times as
 * the test sets them, answers as it asks for. For what is deferred and for the poller.
 */
#ifndef WB_TESTS_UNIT_FAKE_DELAYS_H
#define WB_TESTS_UNIT_FAKE_DELAYS_H

#include "core/pipeline/pipeline.h"

#define FAKE_ROWS_MAX 4096
#define FAKE_SENT_MAX 8192

typedef struct fake_row {
    char destination[64];
    char id[64];
    uint32_t retries;
    uint32_t failures;
    int64_t due;
    char owner[WB_DELAYED_OWNER_SIZE];
    int64_t leased_until;
    unsigned char operation[2048];
    size_t operation_size;
} fake_row;

typedef struct fake_sent {
    char destination[64];
    char id[64];
    int64_t deliver_at;
    char failed_queue[64]; /* header NServiceBus.FailedQ, or "" */
    char retries[16];      /* header NServiceBus.Retries, or "" */
    char body[64];
} fake_sent;

typedef struct fake_delays {
    fake_row rows[FAKE_ROWS_MAX];
    size_t row_count;
    fake_sent sent[FAKE_SENT_MAX];
    size_t sent_count;

    int64_t now;      /* the database's time */
    size_t row_max;   /* a larger operation is WB_REJECT; 0: none is */
    /* What the next calls answer, one after the other; WB_OK behind the end. */
    int store_answers[8], next_answers[8], fetch_answers[8], end_answers[8], remove_answers[8], send_answers[8];
    int cause; /* of these; 0: WB_CAUSE_SERVER */
    /* A destination that is refused with this cause, one that confirms nothing, and one that is
     * refused while it is sent to for the first so many times. */
    const char *refused;
    int refused_cause;
    int refused_in_part; /* and sent all the same */
    const char *silent;
    const char *picky;
    int picky_for;
    int is_away;    /* the database is: no session opens */
    int locked_for; /* so many fetches find all rows locked */
    int64_t told_while_looking; /* when what another thread stores behind the next look is due; 0: nobody does */

    int store_calls, fetch_calls, begin_calls, ride_calls, remove_calls, release_calls, send_windows;
    int works_late;     /* what a fetch does it does when it is ended, and not at all where that fails */
    int64_t window_takes;   /* of `now` */
    int64_t oldest_removed; /* how long ago a row that was removed was taken, at most */
    int has_begun;      /* a fetch, and is not ended */
    int sent_beside;    /* windows that were sent meanwhile */
    size_t released;    /* keys of all release_calls */
    int stop_in_window; /* the number of the window in which somebody stops the endpoint, */
    int stop_in_fetch;  /* or of the fetch, begun or not: */
    atomic_int *stop;
    int storage_open, storage_opened, transport_open, transport_opened;
    /* What the next begins and commits of the transport answer. What begins so that it loses the session loses it until
     * that is closed, and a rollback succeeds all the same: nothing is open. */
    int begin_answers[8], commit_answers[8], lost;
    int unheard; /* operations sent to the silent destination */
} fake_delays;

extern fake_delays fake_store;

/** All empty; a pipeline over it, which delays by the store. */
void fake_delays_reset(wb_pipeline *pipeline);
/** A row as the pipeline would have stored it. */
void fake_delays_add(const char *destination, const char *id, int64_t due);
void fake_delays_add_event(const char *type, const char *id, int64_t due);

#endif

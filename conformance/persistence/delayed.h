/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases about the delayed message store are made of: messages by their ids, calls,
 * and what a call has visited. Each call sets the answers it should give to something else
 * before.
 */
#ifndef WB_CONFORMANCE_DELAYED_H
#define WB_CONFORMANCE_DELAYED_H

#include "conformance/persistence/persistence.h"

/** Longer than any case takes. */
#define WB_LONG_LEASE (3600 * WB_SECOND)
/** A store may round up so far. */
#define WB_ROUNDING 1000

/** Two owners that differ in their last byte alone. */
extern const char wb_owner_a[WB_DELAYED_OWNER_SIZE], wb_owner_b[WB_DELAYED_OWNER_SIZE];

/** A message to one destination, whose operation is its id. */
wb_delayed wb_waiting(const char *id, int64_t due);
wb_delayed_key wb_waiting_key(const wb_delayed *message);

/** What was visited. Set `meanwhile` or `expected` before the call. */
typedef struct wb_seen {
    wb_kit *kit;
    size_t count;
    char ids[1024];  /* in order, a blank after each */
    wb_delayed last; /* its numbers; what it pointed to is gone */
    const wb_delayed *expected; /* or NULL: rows are compared, in order */
    size_t expected_count;
    int (*meanwhile)(void *argument); /* or NULL; what it returns the visitor does */
    void *argument;
    wb_places *places; /* set by the call: a fetch notes them */
} wb_seen;

/* ---- calls; they return the plugin's class ---------------------------------------------- */

int wb_delayed_store(wb_client *client, const wb_delayed *messages, size_t count);
int wb_delayed_next(wb_client *client, int64_t *ret_due, int64_t *ret_now);
int wb_delayed_fetch_into(wb_client *client, const wb_delayed_fetch *what, wb_seen *seen);
int wb_delayed_list_into(wb_client *client, const wb_delayed_filter *filter, wb_seen *seen);

typedef enum wb_change {
    WB_REMOVE,
    WB_INCREMENT,
    WB_RELEASE,
    WB_CANCEL,
    WB_RESCHEDULE,
} wb_change;

/** Keys get the places that the last fetch here told of them. */
int wb_delayed_change(wb_client *client, wb_change change, const char *owner, wb_delayed_key *keys,
                      size_t count, int64_t due);

/** An owner removes with his fetch; where the store has no call for both, as the host does, by two. */
int wb_delayed_ride(wb_client *client, wb_delayed_key *keys, size_t count, const wb_delayed_fetch *what,
                    wb_seen *seen);
/** The two halves of that; only where the store has them. */
int wb_delayed_begin(wb_client *client, wb_delayed_key *keys, size_t count, const wb_delayed_fetch *what);
int wb_delayed_end(wb_client *client, wb_seen *seen);

/* ---- what cases do all the time: @return whether it went as it should ------------------------ */

/** Everything due by `at` (0: now), for long. */
wb_delayed_fetch wb_fetch_of(const char *owner, int64_t at);
int wb_client_delays(wb_client *client, const wb_delayed *messages, size_t count);
/** One message of wb_waiting(). */
int wb_client_delay(wb_client *client, const char *id, int64_t due);
/** Whether these ids are visited, in this order: "a b c ". */
int wb_client_fetches(wb_client *client, const wb_delayed_fetch *what, const char *ids);
/** The same for an owner and a time. */
int wb_client_takes_due(wb_client *client, const char *owner, int64_t at, const char *ids);
/** Whether just these wait, taken or not, earliest due first. */
int wb_client_has_waiting(wb_client *client, const char *ids);
/** Change a message of wb_waiting(); `was_there` is what must be said of it. */
int wb_client_changes(wb_client *client, wb_change change, const char *owner, const char *id,
                      int64_t due, int was_there);
/** Give these of an owner's back, unchanged: "a b c ". */
int wb_client_gives_back(wb_client *client, const char *owner, const char *ids);
/** By the database's clock. */
int wb_client_asks_time(wb_client *client, int64_t *ret_now);
/** Whether next() says this, rounded up at most. */
int wb_client_is_next(wb_client *client, int64_t due);
/** Delete all that waits, whoever has taken it; nothing without a delayed store. */
int wb_client_forgets(wb_client *client);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store: an optional part of the persistence SPI. Messages wait in it that
 * are due later; the host's poller fetches what is due, hands it to the transport, and removes it.
 *
 * A message is known by its key: destination, id, and the number of its delayed retries. Storing
 * a key again changes nothing, so that a crash between store and acknowledgement forks no message.
 *
 * Times are nanoseconds since 1970 UTC, by the database's clock: a host whose clock is wrong, or
 * jumps, delivers nothing early. A store may round a due time up to a whole microsecond, never
 * down.
 *
 * Leases. fetch() takes the messages it returns for one owner, in a short transaction of its own,
 * for as long as `lease` says; nobody else is given them meanwhile. Whoever dies leaves them to
 * the others when the lease ends. So each is dispatched at least once, under an id that does not
 * change, and by one at a time while leases last. With WB_MODE_TRANSACTION_SCOPE the session has
 * joined a transport's transaction (wb_persistence_ops.join): then all calls here are part of it,
 * and fetch, dispatch and remove become visible together: exactly once.
 *
 * Calls are made on a storage session outside of begin() and commit(), each in a transaction of
 * its own that is flushed before it returns; inside a joined transaction they are part of that, and one
 * that fails leaves nothing to do but to roll it back.
 * Results are those of the other calls of a session (sys/persistence.h): WB_OK; WB_RETRY, with
 * WB_CAUSE_SERVER when it is the server's trouble; WB_ABORT; WB_REJECT (a message is too large for
 * a row: WB_CAUSE_TOO_LARGE); WB_NOT_CONNECTED; WB_IN_DOUBT: done or not, and to be done again;
 * WB_FATAL with WB_CAUSE_MISSING when the table is not there.
 *
 * Change log: 1.0 first version.
 */
#ifndef WAYBILL_SYS_DELAYED_H
#define WAYBILL_SYS_DELAYED_H

#include <waybill/sys/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Nothing waits: what next() says then. */
#define WB_NEVER_DUE INT64_MAX

/** Longest destination and id, bytes. */
#define WB_DELAYED_DESTINATION_MAX 255
#define WB_DELAYED_ID_MAX 255
/** One fetch ends with the message whose operation reaches that, of all together. */
#define WB_DELAYED_FETCH_BYTES ((size_t)32 * 1024 * 1024)
/** An owner of leases, bytes. */
#define WB_DELAYED_OWNER_SIZE 16

/** A message that waits. Size first, append-only; in an array of them the first one's size is what they
 *  are apart. */
typedef struct wb_delayed {
    size_t struct_size;
    const char *destination;     /* of a send the queue, of a publish the event's type */
    size_t destination_size;     /* 1 to WB_DELAYED_DESTINATION_MAX, any bytes but NUL */
    const char *id;              /* any bytes */
    size_t id_size;              /* 1 to WB_DELAYED_ID_MAX */
    uint32_t retries;            /* delayed retries it has had: NServiceBus.Retries */
    uint32_t failures;           /* filled by fetch() and list(): how often forwarding it failed */
    int64_t due;                 /* not before this */
    const void *operation;       /* what to dispatch, in the host's encoding; opaque here */
    size_t operation_size;
    /** Filled by list(): until when somebody has taken it, or 0. A time that has passed, of whatever
     *  age: whoever took it was not heard of again, and may have sent it (see cancel()). */
    int64_t leased_until;
    /** Filled by fetch(), or 0: where the store finds the row again, in its own words. */
    uint64_t place;
} wb_delayed;

/** Which one. Pointers as in wb_delayed. Fixed for ever: in plain arrays. */
typedef struct wb_delayed_key {
    const char *destination;
    size_t destination_size;
    const char *id;
    size_t id_size;
    uint32_t retries;
    /** Filled by remove(), increment_failure_count(), release(), cancel() and reschedule(): 1 if the
     *  row was there (and, where an owner is given, still his), else 0. His is what fetch() took for him,
     *  until he gives it back or fetch() takes it for another: that the lease has ended changes nothing. */
    int32_t was_there;
    /** What fetch() said with this key, or 0: it spares a search. The row may be gone since, or
     *  somebody else's. */
    uint64_t place;
} wb_delayed_key;

/** Called for each message found; it is valid during the call only. Return WB_OK to go on. */
typedef int (*wb_delayed_fn)(void *argument, const wb_delayed *message);

/** What to fetch. Size first, append-only. */
typedef struct wb_delayed_fetch {
    size_t struct_size;
    /** Due at this time or before; 0: now, by the database's clock. */
    int64_t at;
    /** At most so many, earliest due first, and visited in that order. Fewer where their operations are more than
     *  WB_DELAYED_FETCH_BYTES together, but one at least: a caller keeps them in memory. */
    size_t limit;
    /** Who takes them, WB_DELAYED_OWNER_SIZE bytes, and for how long. */
    const char *owner;
    int64_t lease;
} wb_delayed_fetch;

/** A part of what waits, for people. Size first, append-only. All given conditions hold; NULL
 *  or 0 asks nothing. */
typedef struct wb_delayed_filter {
    size_t struct_size;
    const char *destination;
    size_t destination_size;
    const char *id;
    size_t id_size;
    int64_t due_from;   /* due at this time or later */
    int64_t due_before; /* due before */
    size_t limit;       /* at most so many, earliest due first; 0: all */
} wb_delayed_filter;

/** Size first, append-only. */
typedef struct wb_delayed_ops {
    size_t struct_size;

    /** Whether the store can be used with this transaction mode; no network. Main thread, before
     *  any session is opened. The tables are made by wb_persistence_ops.install() where
     *  wb_endpoint_info.delays is WB_DELAYS_BY_STORE, and looked for by verify() then.
     *  @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG and the modes it can honour in words. */
    int (*initialize)(wb_persistence *persistence, int32_t mode, wb_error *error);

    /** Add messages. One whose key is there already is left as it is, and no error. */
    int (*store)(wb_storage_session *session, const wb_delayed *messages, size_t count,
                 wb_error *error);

    /** When the next one is due that nobody has taken, or whose lease ends first, whichever comes
     *  first; WB_NEVER_DUE when nothing waits. And the database's time. */
    int (*next)(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now, wb_error *error);

    /** Take what is due and visit it. Two instances that fetch at once never get the same, and
     *  do not wait for each other. The rows are taken, durably, before the first is visited. A `visit` that ends early leaves the rest taken. */
    int (*fetch)(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_delayed_fn visit,
                 void *argument, wb_error *error);

    /** Delete messages, in as few statements as the database allows. With an owner
     *  (WB_DELAYED_OWNER_SIZE bytes) only those he still has taken; NULL: whoever has them, if
     *  anybody. */
    int (*remove)(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                  size_t count, wb_error *error);

    /** Forwarding these failed: count it, and give them back: due again at `due`, taken by
     *  nobody. Only those the owner still has taken. */
    int (*increment_failure_count)(wb_storage_session *session, const char *owner,
                                   wb_delayed_key *keys, size_t count, int64_t due,
                                   wb_error *error);

    /** Give these back, taken by nobody, without a failure: due as they were, or, unless that is 0,
     *  at `due`. Only those the owner still has taken. */
    int (*release)(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                   size_t count, int64_t due, wb_error *error);

    /** Visit what waits, earliest due first, without taking it. Each row is copied before it is
     *  visited, or read in a way that keeps no other session waiting. `operation` may be NULL
     *  unless the filter names an id. */
    int (*list)(wb_storage_session *session, const wb_delayed_filter *filter, wb_delayed_fn visit,
                void *argument, wb_error *error);

    /** Delete what nobody has taken: a message for which was_there says 1 was not sent and never will
     *  be. Of one that is taken, or gone, it says 0; also of one that somebody had taken whose lease
     *  has ended, for he may have sent it before he died. That the next owner gave it back proves
     *  nothing: it stays so until it is sent. (So a lease, and that it has ended, must survive a
     *  crash of the server as the message does.) */
    int (*cancel)(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                  wb_error *error);
    /** The same, but due at another time. */
    int (*reschedule)(wb_storage_session *session, wb_delayed_key *keys, size_t count, int64_t due,
                      wb_error *error);

    /** Optional, both or none: remove() and fetch() for fetch->owner in one transaction, which spares a
     *  round trip and a flush while much is due, and in two halves: the host dispatches one lot while the
     *  next one comes. begin_fetch() sends what is asked for, and need not wait for the answer; a store that
     *  cannot but wait does all of it here. `count` may be 0. Between the two nothing but end_fetch() and
     *  close() is called on the session, for a window of the broker (10 s, rarely 15); the keys, what they
     *  point to and the owner's bytes stay where they are, *fetch need not. When it fails there is nothing to
     *  end, and the keys may be removed or not. Outside of joined transactions only. NULL: the host makes two
     *  calls. */
    int (*begin_fetch)(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                       const wb_delayed_fetch *fetch, wb_error *error);
    /** Wait for that, and visit what was taken as fetch() does. The lease began with begin_fetch(), or
     *  later. was_there is not filled. The fetch is over whatever this returns; after a failure the host removes the
     *  keys again, on this session or another. A session that is closed instead leaves all of it done, or
     *  nothing. */
    int (*end_fetch)(wb_storage_session *session, wb_delayed_fn visit, void *argument, wb_error *error);
} wb_delayed_ops;

#ifdef __cplusplus
}
#endif
#endif

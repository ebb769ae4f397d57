/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages: an optional part of the persistence SPI. An endpoint with a group `failures`
 * consumes an error queue and keeps what it finds there in a table beside its outbox, where people
 * ask about it, and from where it is sent back.
 *
 * A message is known by its key, which follows from its id and the endpoint it failed in: what
 * fails again is the same row, with one attempt more. What the rows hold of it is the host's
 * affair: bytes.
 *
 * With WB_CAP_FAILED the persistence hands the operations out by wb_persistence_ops.interface(),
 * under the name WB_FAILED_INTERFACE; its first argument is theirs. The table is made by install()
 * and looked for by verify() where wb_endpoint_info.failures is 1, and goes with uninstall().
 *
 * Between begin() and commit() a call is part of that transaction, and a failure is reported as
 * those of handlers' statements are. Outside each is a transaction of its own, flushed before it
 * returns. Results are those of the other calls of a session (sys/persistence.h).
 *
 * Times are nanoseconds since 1970 UTC, kept to the microsecond.
 *
 * Change log: 1.0 first version.
 */
#ifndef WAYBILL_SYS_FAILED_H
#define WAYBILL_SYS_FAILED_H

#include <waybill/sys/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The name that interface() is asked for; it answers with a wb_failed_ops. */
#define WB_FAILED_INTERFACE "waybill.failed"

/** Longest key, bytes. */
#define WB_FAILED_KEY_MAX 64

/* What became of it. Stored: append-only. */
#define WB_FAILED_ANY 0      /* of a filter: whichever */
#define WB_FAILED_WAITS 1    /* it failed, and nobody has seen to it */
#define WB_FAILED_RETRYING 2 /* it was sent back, and nothing was heard of it yet */
#define WB_FAILED_RESOLVED 3 /* it was sent back, and handled */
#define WB_FAILED_ARCHIVED 4 /* somebody decided that nothing is to be done */

/** One message. Size first, append-only. */
typedef struct wb_failed {
    size_t struct_size;
    const char *key; /* any bytes */
    size_t key_size; /* 1 to WB_FAILED_KEY_MAX */
    int32_t status;
    uint32_t attempts;    /* how often it came to the error queue */
    int64_t failed_at;    /* when it failed last */
    int64_t changed_at;   /* when its status changed, by the database's clock, from which it is aged */
    const void *summary;  /* what lists show, in the host's encoding; a few kB at most */
    size_t summary_size;
    const void *message;  /* all of it, in the host's encoding; NULL in a list */
    size_t message_size;
} wb_failed;

/** Called for each message found; it is valid during the call only, in which the session must not be used. Return
 *  WB_OK to go on; whatever else it returns ends the visits, and is what the call returns. */
typedef int (*wb_failed_fn)(void *argument, const wb_failed *failed);

/** A part of what is there. Size first, append-only. */
typedef struct wb_failed_filter {
    size_t struct_size;
    int32_t status; /* WB_FAILED_ANY: whichever */
    uint32_t reserved;
    int64_t from;   /* failed then or later */
    int64_t before; /* failed before; 0: whenever */
} wb_failed_filter;

/** A change of the status, which happens only where it is `from`. Size first, append-only. */
typedef struct wb_failed_turn {
    size_t struct_size;
    const char *key;
    size_t key_size;
    int32_t from, to;
    int64_t now;
} wb_failed_turn;

/** Size first, append-only. */
typedef struct wb_failed_ops {
    size_t struct_size;
    /** Add a message that failed; `status` and `attempts` are not read. One that is there waits again: with an attempt
     *  more, and with what this one has in place of what it had. But where it failed at the same time it is the
     *  same failure, and nothing changes. */
    int (*put)(wb_storage_session *session, const wb_failed *failed, wb_error *error);
    /** Of two who ask for the same change at once, one is told that he made it (*ret_was 1), the other,
     *  once that is known, that he did not (0). */
    int (*turn)(wb_storage_session *session, const wb_failed_turn *turn, int *ret_was, wb_error *error);
    /** Delete it where its status is that one; likewise. */
    int (*discard)(wb_storage_session *session, const char *key, size_t key_size, int32_t status, int *ret_was,
                   wb_error *error);
    /** Visit it, with its message; nobody, if it is not there. */
    int (*get)(wb_storage_session *session, const char *key, size_t key_size, wb_failed_fn visit, void *argument,
               wb_error *error);
    /** Visit them, without their messages, in the order in which they failed. Nothing is held on the server meanwhile.
     *  Outside of a transaction only. */
    int (*list)(wb_storage_session *session, const wb_failed_filter *filter, wb_failed_fn visit, void *argument,
                wb_error *error);
    /** Delete at most `limit` of those that do not wait (WB_FAILED_WAITS) and changed last before then, longest ago first.
     *  Called again until *ret_deleted is 0. Outside of a transaction only. */
    int (*clean_up)(wb_storage_session *session, int64_t before, size_t limit, size_t *ret_deleted, wb_error *error);
} wb_failed_ops;

#ifdef __cplusplus
}
#endif
#endif

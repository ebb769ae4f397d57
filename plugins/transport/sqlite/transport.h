/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport's inside: what its files share. README.md says how the queue
 * works and why no crash loses or doubles a message.
 */
#ifndef WB_SQLITE_TRANSPORT_H
#define WB_SQLITE_TRANSPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <waybill/sys/transport.h>

#include "plugins/common/sqlite/database.h"
#include "plugins/transport/sqlite/codec.h"

#define WB_SQLITE_TRANSPORT_SCHEMA_PART "transport"
#define WB_SQLITE_TRANSPORT_SCHEMA_VERSION 1

/* ---- instance ------------------------------------------------------------- */

struct wb_transport {
    const wb_host *host;
    const wb_endpoint_info *endpoint;
    const wb_sqlite_db_config *config;
    char *path;          /* canonical path of the file */
    char *sessions_path; /* path + WB_SQLITE_LOCKFILE_SUFFIX */
    /* The watch of the sessions file, shared by all sessions: the kernel allows a user
     * few inotify instances. Guarded by `lock`, as is the list of sessions. */
    pthread_mutex_t lock;
    int watch; /* -1: not there; waits then look at the file every few milliseconds */
    wb_transport_session *sessions;
};

/* install.c */
int wb_sqlite_transport_install(wb_transport *transport, wb_error *error);
int wb_sqlite_transport_verify(wb_transport *transport, wb_error *error);
/** *ret_number is 0 where there is no such queue. The tables are there. */
int wb_sqlite_transport_find_queue(wb_sqlite_database *db, const char *name, int64_t *ret_number, wb_error *error);
/** Of the tables; 0: there are none. A later one than ours is refused. */
int wb_sqlite_transport_version(wb_transport *transport, wb_sqlite_database *db, int *ret_version, wb_error *error);

/* Each session that receives from a queue holds the lock on one of its bytes in the sessions file, that of its own
 * number; above those that the sqlite persistence has there. */
#define WB_SQLITE_SESSIONS_MAX 65535

static inline int64_t wb_sqlite_reader_locks(int64_t queue)
{
    return (INT64_C(1) << 48) + queue * (WB_SQLITE_SESSIONS_MAX + 1);
}

/* removal.c: what wb_transport_ops says */
int wb_sqlite_transport_depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error);
int wb_sqlite_transport_uninstall(wb_transport *transport, uint32_t flags, wb_error *error);
int wb_sqlite_transport_unsubscribe(wb_transport *transport, const char *const *types, size_t count, wb_error *error);
int wb_sqlite_transport_subscriptions(wb_transport *transport, wb_subscription_fn visit, void *argument, wb_error *error);

/* ---- session --------------------------------------------------------------- */

/* A queue that a session receives from, with the statements on its table; they are the connection's, which finalizes
 * them. */
typedef struct wb_sqlite_source {
    const char *name;
    int64_t queue;
    sqlite3_stmt *fetch;
    sqlite3_stmt *fetch_weighed;
    sqlite3_stmt *peek;
    sqlite3_stmt *delete_run;
} wb_sqlite_source;

#define WB_SQLITE_SOURCES_MAX (1 + WB_QUEUES_MAX)

/* How many queues the endpoint receives from, and their names: its own is the first. */
size_t wb_sqlite_transport_count_queues(const wb_endpoint_info *endpoint);
const char *wb_sqlite_transport_queue(const wb_endpoint_info *endpoint, size_t number);

/* A run of messages of a queue that belongs to this session: a row of waybill_claim.
 * No other message of that queue ever has a number in it. */
typedef struct wb_sqlite_claim {
    wb_sqlite_source *source;
    int64_t first;
    int64_t last;
    size_t held;     /* messages in hand, acknowledged ones not counted */
    size_t leaving;  /* of these: removed by the transaction that is open */
    int redelivered; /* some of them have a delivery count */
    int gone;        /* the transaction that is open deletes the row */
    struct wb_sqlite_claim *next;
} wb_sqlite_claim;

typedef struct wb_sqlite_message {
    wb_incoming incoming; /* first: the host's pointer is ours */
    int64_t seq;
    wb_sqlite_claim *claim;
    size_t bytes; /* of memory */
    void *large;  /* NULL, or the bytes of a message over the limit; it is in the gate */
    struct wb_sqlite_message *previous; /* in the list of messages in hand */
    struct wb_sqlite_message *next;
} wb_sqlite_message;

/* Messages acknowledged whose rows are not deleted, or not deleted for good. */
typedef struct wb_sqlite_message_list {
    wb_sqlite_message **items;
    size_t count;
    size_t capacity;
} wb_sqlite_message_list;

/* A queue to send to, with its statements; a small cache. */
typedef struct wb_sqlite_route {
    char *name; /* NULL when it was found by number */
    int64_t number;
    uint64_t stamp; /* the transaction that next_seq was read in */
    int64_t next_seq;
    sqlite3_stmt *insert;
    sqlite3_stmt *highest;
} wb_sqlite_route;

/* Who subscribed to an event type, as read in one transaction. */
typedef struct wb_sqlite_subscribers {
    char *type;
    uint64_t stamp;
    int64_t *queues;
    size_t count;
    size_t capacity;
} wb_sqlite_subscribers;

#define WB_SQLITE_ROUTES_MAX 64
#define WB_SQLITE_TYPES_MAX 64

/* As long as the connection, which finalizes them. NULL: not yet. */
typedef struct wb_sqlite_statements {
    /* take.c, receive.c, claim.c */
    sqlite3_stmt *list_claims;
    sqlite3_stmt *insert_claim;
    sqlite3_stmt *list_counts;
    sqlite3_stmt *claims_of;
    sqlite3_stmt *release_all;
    sqlite3_stmt *find_claim;
    /* acknowledge.c */
    sqlite3_stmt *delete_counts;
    sqlite3_stmt *delete_claim;
    sqlite3_stmt *count_up;
    /* send.c; each route has its own besides */
    sqlite3_stmt *find_queue;
    sqlite3_stmt *find_subscribers;
} wb_sqlite_statements;

struct wb_transport_session {
    wb_transport *transport;
    uint32_t purpose;
    wb_sqlite_database db;
    wb_sqlite_statements prepared;
    int sessions_fd; /* the lock on our number, and the bell; -1: not open */
    int64_t number;  /* of the session, 1 and up; 0: receives nothing */
    wb_sqlite_source sources[WB_SQLITE_SOURCES_MAX];
    size_t source_count;
    size_t turn;              /* whose it is to be read first */
    wb_sqlite_source *source; /* that is being looked at */
    int in_transaction; /* between begin() and commit() or rollback() */
    uint64_t watched;   /* what the disk had refused when it began */
    int stopped;        /* receives nothing any more */
    uint64_t stamp;     /* counts transactions */
    int ring;           /* the open transaction makes messages available */
    int wrote;          /* since the log was last cut back */

    /* take.c, receive.c */
    wb_sqlite_claim *claims;
    wb_sqlite_message *in_hand;
    wb_sqlite_message_list acknowledged;
    const wb_incoming **received; /* what receive() returned last */
    size_t received_capacity;
    int hot; /* the last receive found something: claim without looking first */
    int64_t busy_since; /* others had the file in each attempt to claim from then on; 0: not so */

    /* send.c */
    wb_sqlite_route routes[WB_SQLITE_ROUTES_MAX];
    size_t route_count;
    size_t route_evict;
    wb_sqlite_subscribers types[WB_SQLITE_TYPES_MAX];
    wb_sqlite_subscribers addressees; /* of the event that is being sent; its type is NULL */
    size_t type_count;
    size_t type_evict;
    wb_sqlite_codec_buffer headers;

    /* reason.c */
    char **reasons; /* texts of refused operations; valid until the next call */
    size_t reason_count;
    size_t reason_capacity;

    /* wait.c */
    int wake; /* eventfd */
    atomic_int waiting;
    atomic_int interrupted;
    atomic_int died; /* a descriptor of the sessions file was closed: look for the dead */
    wb_transport_session *next;
};

/* With WB_MODE_NONE messages are deleted by the transaction that reads them; there are no
 * claims, and a message in hand is only memory. */
static inline int wb_sqlite_session_is_forgetful(const wb_transport_session *session)
{
    return session->transport->endpoint->mode == WB_MODE_NONE;
}

/* session.c */
int wb_sqlite_session_open(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                           wb_transport_session **ret_session, wb_error *error);
void wb_sqlite_session_close(wb_transport_session *session);
int wb_sqlite_session_begin(wb_transport_session *session, wb_error *error);
int wb_sqlite_session_commit(wb_transport_session *session, wb_error *error);
int wb_sqlite_session_rollback(wb_transport_session *session, wb_error *error);
void *wb_sqlite_session_native(wb_transport_session *session);
int wb_sqlite_session_stop_receiving(wb_transport_session *session, wb_error *error);
/* The transaction of begin() is gone before its commit: whose fault it was. */
int wb_sqlite_session_fail_ended(wb_transport_session *session, wb_error *error);
/* Whether the calling thread has a transaction open on the file, of another session or of
 * the persistence: waiting for it would be in vain. */
int wb_sqlite_session_is_blocked_by_thread(const wb_transport_session *session);

/* Open and end a transaction of the session's own; the commit rings the bell if asked. */
int wb_sqlite_session_begin_own(wb_transport_session *session, wb_sqlite_db_durability durability,
                                wb_error *error);
int wb_sqlite_session_commit_own(wb_transport_session *session, wb_error *error);
/* A statement on the table of one queue; `format` holds one %lld for its number. */
int wb_sqlite_session_prepare_for_queue(wb_transport_session *session, sqlite3_stmt **statement,
                                        const char *format, int64_t queue, wb_error *error);

/* claim.c: who owns what; all inside a transaction */

/* A claim of the queue, by anyone. */
typedef struct wb_sqlite_foreign_claim {
    int64_t first;
    int64_t last;
    int64_t session;
} wb_sqlite_foreign_claim;

/* All claims of the queue that is being looked at, in order; *ret_claims is to be freed. */
int wb_sqlite_claim_list(wb_transport_session *session, wb_sqlite_foreign_claim **ret_claims,
                         size_t *ret_count, wb_error *error);
/* Claims in the order of their numbers have gaps between them: where the one that begins at
 * `from` ends (below `from` when it is empty), and where the one behind the next claim begins;
 * 0 when there is none. `next` is NULL behind the last claim. */
int64_t wb_sqlite_claim_gap_end(const wb_sqlite_foreign_claim *next, int64_t from);
int64_t wb_sqlite_claim_gap_begin(const wb_sqlite_foreign_claim *next, int64_t from);
/* Whether the session of that number died (never true for our own). */
int wb_sqlite_claim_is_dead(const wb_transport_session *session, int64_t number);
/* Whether a session has claims, in any queue. */
int wb_sqlite_claim_exists(wb_transport_session *session, int64_t number, int *ret_exists,
                           wb_error *error);
/* Give back everything a session claimed and count its deliveries. Writes. */
int wb_sqlite_claim_release_all(wb_transport_session *session, int64_t number, wb_error *error);
/* Claim [first, last] of a queue for us: a row and, in *ret_claim, its image. Writes. */
int wb_sqlite_claim_insert(wb_transport_session *session, wb_sqlite_source *source, int64_t first, int64_t last,
                           wb_sqlite_claim **ret_claim, wb_error *error);
/* Whether all our claims are still in the table. */
int wb_sqlite_claim_verify(wb_transport_session *session, wb_error *error);
void wb_sqlite_claim_forget(wb_transport_session *session, wb_sqlite_claim *forgotten);

/* take.c */
/* Take at most `max` messages that are there into session->received. *ret_left says that
 * some over the limit were left. */
int wb_sqlite_take_messages(wb_transport_session *session, size_t max, size_t *ret_count,
                            int *ret_left, wb_error *error);

/* receive.c */
int wb_sqlite_session_receive(wb_transport_session *session, int64_t deadline,
                              const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                              wb_error *error);

/* message.c */
/* What a statement that reads messages selects. One that weighs them first, value by value,
 * has the limits as ?4 to ?6. */
extern const char wb_sqlite_message_columns[];
extern const char wb_sqlite_message_columns_weighed[];
void wb_sqlite_message_bind_limits(const wb_transport_session *session, sqlite3_stmt *statement);
/* A larger row is weighed. INT_MAX without limits. */
int wb_sqlite_message_row_max(const wb_transport_session *session);
/* A copy of such a row. *ret_message is NULL with WB_OK when it is over the limit and
 * either must not be or somebody else is in the gate. */
int wb_sqlite_message_read(wb_transport_session *session, sqlite3_stmt *row, int is_weighed,
                           int may_be_large, wb_sqlite_message **ret_message, wb_error *error);
/* Keep it among the messages in hand. */
void wb_sqlite_message_hold(wb_transport_session *session, wb_sqlite_message *held);
/* Its bytes are needed no more, though the message is still in hand. */
void wb_sqlite_message_release_large(wb_transport_session *session, wb_sqlite_message *released);
/* Free it, and its claim with the last message of it. */
void wb_sqlite_message_forget(wb_transport_session *session, wb_sqlite_message *forgotten);

/* large.c */
/* The process holds one message over the limit at most. @return 1 entered, 0 occupied. */
int wb_sqlite_large_enter(void);
void wb_sqlite_large_leave(wb_transport_session *session);
/* A value of a message's row, open for reading, and its first bytes; to be closed. */
int wb_sqlite_large_open(wb_transport_session *session, int64_t seq, const char *column,
                         sqlite3_blob **ret_blob, wb_error *error);
int wb_sqlite_large_read(wb_transport_session *session, sqlite3_blob *blob, void *to, size_t size,
                         wb_error *error);

/* acknowledge.c */
int wb_sqlite_session_acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                                  size_t count, wb_error *error);
int wb_sqlite_session_give_back(wb_transport_session *session, const wb_incoming *const *messages,
                                size_t count, wb_error *error);
/* Delete the rows of acknowledged messages from item `from` on; inside a transaction. */
int wb_sqlite_acknowledge_apply(wb_transport_session *session, size_t from, wb_error *error);
/* Delete the rows [first, last] of the queue that is being looked at, which nobody claimed; inside a transaction. */
int wb_sqlite_acknowledge_run(wb_transport_session *session, int64_t first, int64_t last,
                              wb_error *error);
/* After that transaction: forget the messages; or they are in hand again; or they stay
 * acknowledged and are tried again. */
void wb_sqlite_acknowledge_committed(wb_transport_session *session);
void wb_sqlite_acknowledge_rolled_back(wb_transport_session *session);
void wb_sqlite_acknowledge_postponed(wb_transport_session *session);
/* Delete the rows of acknowledged messages in a transaction of their own. */
int wb_sqlite_acknowledge_flush(wb_transport_session *session, wb_error *error);

/* send.c */
int wb_sqlite_session_send(wb_transport_session *session, wb_operation *const *operations,
                           size_t count, int64_t deadline, wb_error *error);
/* Whose connection was closed. */
void wb_sqlite_send_forget_statements(wb_transport_session *session);
void wb_sqlite_send_free(wb_transport_session *session);

/* reason.c */
#define WB_SQLITE_REASON_NAME_SIZE 320
/* Give an operation the result WB_REJECT with its cause and reason. */
void WB_PRINTF(4, 5) wb_sqlite_reason_refuse(wb_transport_session *session, wb_operation *operation,
                                             int cause, const char *format, ...);
void wb_sqlite_reason_forget_all(wb_transport_session *session);
/* A name that a peer gave, as text of ours: control characters and what is no UTF-8 as
 * \\xNN, cut to what a reader needs. */
const char *wb_sqlite_reason_show_name(char shown[WB_SQLITE_REASON_NAME_SIZE], const char *name);

/* wait.c */
int wb_sqlite_wait_open(wb_transport_session *session, wb_error *error);
void wb_sqlite_wait_close(wb_transport_session *session);
/* Announce that a wait may follow: everything that happens from here on ends it. */
void wb_sqlite_wait_prepare(wb_transport_session *session);
/* Sleep until something happened to the file, interrupt(), or `until`. */
void wb_sqlite_wait_for_change(wb_transport_session *session, int64_t until);
void wb_sqlite_wait_done(wb_transport_session *session);
/* Tell every session of every process that messages are there. */
void wb_sqlite_wait_ring(wb_transport_session *session);
void wb_sqlite_session_interrupt(wb_transport_session *session);

#endif

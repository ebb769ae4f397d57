/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence SPI: keeps the outbox, shares its transaction with handlers.
 *
 * Life cycle and threads are those of transports (sys/transport.h). A transaction is ended by the
 * thread that began it; but with WB_CAP_CLAIM_WITH_COMMIT another one may: a program hands its
 * transactional session from thread to thread, one of which uses it at a time. A session is opened
 * and closed by any thread.
 *
 * The outbox of an endpoint is two tables: deduplication records (id, batch), only
 * ever inserted and dropped by age; and pending operations (batch, bytes), one row a
 * batch, deleted when dispatched. A batch number is chosen by the host: milliseconds
 * since 2020-01-01 UTC in its upper 42 bits (positive as a signed number until 2089),
 * so that it also says how old a record is. The time is the database's where clock() is
 * there: a host whose clock is wrong harms nobody. A pending row may carry a number in
 * the future: it is parked, and due then. Two endpoints never share records. Ids are
 * compared byte for byte.
 *
 * A transaction:
 *     begin (claims ids) -> handlers use the native handle -> commit (stores)
 * and outside of it: mark, pending, sweep, clean_up.
 *
 * No call has a deadline, and each ends by itself all the same: what waits for a lock, or for a claim, does
 * so as long as an option of the plugin says, and then returns WB_RETRY with WB_CAUSE_SERVER, as does
 * what a full store refuses. A store need not know SQL.
 *
 * Change log: 1.0 first version; appended before its release: uninstall, rename, note_subscriptions,
 * subscriptions; keep_note, look_up_note; examine.
 */
#ifndef WAYBILL_SYS_PERSISTENCE_H
#define WAYBILL_SYS_PERSISTENCE_H

#include <waybill/sys/delayed.h>
#include <waybill/sys/plugin.h>
#include <waybill/sys/written.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One id to claim. Fixed for ever: they are many, in plain arrays; what there may be more to say of one
 *  comes as an array of its own, beside them in wb_begin or wb_commit. The host passes distinct ids in
 *  ascending byte order, so that transactions that share ids wait for each other and never deadlock. */
typedef struct wb_claim {
    const void *id;
    size_t id_size; /* 1 to 255 */
    /** Filled by begin(): 0 when the id is now ours; otherwise the batch number of
     *  the record that was there first: the message is a duplicate. */
    uint64_t duplicate_of;
} wb_claim;

/** A partition of the transport's (WB_CAP_POSITION), and how far its messages are done with. Fixed for
 *  ever, as wb_claim. One row
 *  each, whatever the number of messages. begin() locks the rows, so that of two who have messages of
 *  one partition in hand, one of them behind a rebalance, the second waits and then sees how far the
 *  first has come. The host passes distinct partitions in ascending byte order. */
typedef struct wb_position {
    const void *partition;
    size_t partition_size; /* 1 to 300 */
    /** What the row is to say if that is more than it says: behind the last message claimed. At most
     *  INT64_MAX, as is every position. */
    uint64_t next;
    /** Filled by begin(): what it said. The messages below it are done with. 0: there was no row. */
    uint64_t found;
    /** Filled by begin(): the batch that brought it there; 0: none did. */
    uint64_t batch;
} wb_position;

/** Dispatched operations: what a pending row of `batch` becomes. Fixed for ever, as wb_claim. */
typedef struct wb_mark {
    uint64_t batch;
    /** NULL: everything was dispatched, delete the row. Otherwise what remains, be it of no bytes. */
    const void *remaining;
    size_t remaining_size;
} wb_mark;

/** A transaction to begin. Size first, append-only. */
typedef struct wb_begin {
    size_t struct_size;
    /** Marks to make first: a transaction of their own which need not be flushed to
     *  disk or, where a transaction cannot do without the flush, part of the one that
     *  follows. Either way they stand whatever becomes of that one, at the latest when
     *  it has been committed, rolled back or closed; only a connection that breaks may
     *  lose them. */
    const wb_mark *marks;
    size_t mark_count;
    /** Number of the batch that begins. 0: no outbox, nothing is claimed. */
    uint64_t batch;
    wb_claim *claims;
    size_t claim_count;
    /** Partitions to move on, in this transaction, before any id is claimed. None but where the plugin
     *  has WB_CAP_POSITIONS. */
    wb_position *positions;
    size_t position_count;
    /** Records to remove with the marks, whose ids another store remembers: each only if it is of the batch
     *  that its duplicate_of says. All of one batch stand together. None but where the plugin has
     *  WB_CAP_FORGET. */
    const wb_claim *forgotten;
    size_t forgotten_count;
} wb_begin;

/** A transaction to commit. Size first, append-only. */
typedef struct wb_commit {
    size_t struct_size;
    /** What counts for the row of `operations`, `released`, `claims` and `positions`. It may be another one than
     *  begin() was told, which counts for what begin() claimed and moved: a row that is parked anew has a number in
     *  the future, and the claim that was made for it one of today; a session commits under a number of that moment;
     *  and what a handler committed of an earlier batch is made good under that one's number. */
    uint64_t batch;
    /** Operations to store under `batch`, or NULL for none. */
    const void *operations;
    size_t operations_size;
    /** Claims to give back in the same transaction: their messages were not handled. */
    const wb_claim *released;
    size_t released_count;
    /** Filled on failure: the item (see set_item) whose deferred statement failed,
     *  or SIZE_MAX when the failure is nobody's in particular. */
    size_t failed_item;
    /** Messages for the delayed message store (sys/delayed.h), to be stored in this transaction, as
     *  store() does it. None but where the plugin has WB_CAP_DELAY_WITH_COMMIT. */
    const wb_delayed *delayed;
    size_t delayed_count;
    /** Ids to claim under `batch` in this transaction, which began without any: a session claims
     *  late, so that whoever claims its id waits for one round trip. If one of them has a record,
     *  nothing is committed: WB_ABORT, WB_RETRY or WB_REJECT, and find() says whose it is. What
     *  another open transaction has claimed is waited for. A claim whose duplicate_of is not 0
     *  replaces the record of that batch, if it is there, and only that one: it is removed before
     *  the claim is made, in the same transaction, so that the id is nobody's at no time. None but
     *  where the plugin has WB_CAP_CLAIM_WITH_COMMIT. */
    const wb_claim *claims;
    size_t claim_count;
    /** Partitions to set back in this transaction, since not all of what was claimed was handled: the
     *  row that says it was brought by `batch` of this wb_commit says `next` and its `batch` then; any
     *  other row stays. `found` is not looked at. */
    const wb_position *positions;
    size_t position_count;
} wb_commit;

/** A pending row. Size first, append-only. */
typedef struct wb_pending {
    size_t struct_size;
    uint64_t batch;
    const void *operations;
    size_t operations_size;
} wb_pending;

/** Called for each row found; the row is valid during the call only. Return WB_OK to
 *  go on. Whatever else a visitor of this header returns ends the visits, and is what the call returns; `error` is
 *  left alone then, and the session goes on: nothing of the visit stays open, no lock that others meet either. */
typedef int (*wb_pending_fn)(void *argument, const wb_pending *pending);

/* What take_pending() answers. */
#define WB_TAKEN_BY_OTHERS 0 /* another session has the row, or it is gone */
#define WB_TAKEN 1
#define WB_TAKEN_UNGUARDED 2 /* it is there, but nobody can be kept from it: behind a pooler that gives
                              * each transaction another session of the server's, a lock does not last */

/** wb_pending_filter.flags: where a look along the rows took long and found none, it need not be
 *  repeated for a while; what turned up there since may be left out. */
#define WB_PENDING_PASS_EMPTY 1u

/** What pending rows to list. Size first, append-only. */
typedef struct wb_pending_filter {
    size_t struct_size;
    uint64_t after;  /* numbers above this one */
    uint64_t before; /* and below this one */
    size_t limit;    /* so many rows at most; 0: all */
    /** 0: rows whole. Otherwise the first bytes of each, at most so many: the row's operations_size then says
     *  how many are handed on, not how many there are. */
    size_t head;
    uint32_t flags;  /* WB_PENDING_x */
    uint32_t reserved;
} wb_pending_filter;

/** How well a number is known. */
#define WB_COUNT_EXACT 0
#define WB_COUNT_ESTIMATED 1 /* by the database's statistics */
#define WB_COUNT_AT_LEAST 2  /* there are more, and who knows how many */

/** An endpoint's outbox in numbers. Size first, append-only. */
typedef struct wb_outbox_stats {
    size_t struct_size;
    /** Asked for: whatever it costs. Otherwise the answer comes soon, however many records there are. */
    int32_t is_exact;
    /** Deduplication records, and how well that is known: WB_COUNT_x. */
    int32_t records_are;
    uint64_t records;
    /** The batch numbers of the oldest and of the newest record; 0: there is none. */
    uint64_t oldest_record;
    uint64_t newest_record;
    /** Bytes of the tables with their indexes, free space in them included; -1: not known. */
    int64_t record_bytes;
    int64_t pending_bytes;
} wb_outbox_stats;

/** Called for each partition with a row: `found` and `batch` are filled, and what it says is valid
 *  during the call only. Return WB_OK to go on. */
typedef int (*wb_position_fn)(void *argument, const wb_position *position);

/** Size first, append-only. */
typedef struct wb_persistence_ops {
    size_t struct_size;

    /** Make an instance. No network. `host`, `endpoint`, `config` stay valid. What is refused here, and where that is
     *  reported: see wb_transport_ops.create. */
    int (*create)(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_persistence **ret_persistence, wb_error *error);
    void (*destroy)(wb_persistence *persistence);

    /** Optional: see wb_transport_ops.shared_resource. */
    int (*shared_resource)(const void *config, char *buffer, size_t size);

    /** The SQL that install() would run on an empty database, or in lines of SQL comments what it would
     *  make where there is no SQL; NUL-terminated, not empty; owned by the instance. */
    const char *(*schema)(wb_persistence *persistence);
    /** Make or upgrade the tables. Idempotent, and safe to run from two processes. */
    int (*install)(wb_persistence *persistence, wb_error *error);
    /** Check that the tables are there, in this version, with the privileges needed.
     *  Warn about server settings that lose commits. Changes nothing. On the threads of a
     *  transport's verify(). */
    int (*verify)(wb_persistence *persistence, wb_error *error);

    /** Connect. *ret_session is looked at with WB_OK alone, and is not NULL then. */
    int (*open)(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error);
    void (*close)(wb_storage_session *session);

    /** Make the marks, open a transaction, claim the ids: one round trip where the
     *  database allows. A claim held by another open transaction is waited for, not for ever.
     *  @return WB_OK; WB_ABORT or WB_RETRY (nothing is open); WB_NOT_CONNECTED. On
     *  failure the marks may or may not have been made; they are idempotent. With a batch number, and nothing to
     *  mark, forget, claim or move on, it may put off asking the server: what fails then is the failure of what asks first. */
    int (*begin)(wb_storage_session *session, wb_begin *begin, wb_error *error);

    /** Optional, instead of begin and commit, for WB_MODE_TRANSACTION_SCOPE: use the
     *  transaction that is open on a transport's native handle until the next call;
     *  NULL leaves it. */
    int (*join)(wb_storage_session *session, void *native, wb_error *error);

    /** The interface behind a handler's header ("pgsql.1"), or NULL. Its functions
     *  take the session and the current item. */
    const void *(*interface)(wb_storage_session *session, const char *name);

    /** After each handler: is the transaction still as it must be? WB_OK, or the class
     *  of what the handler did to it (left it failed: WB_RETRY; ended it: WB_FATAL for
     *  the message, reported as WB_REJECT). What a full disk or another trouble of the
     *  server's did to it is WB_RETRY with WB_CAUSE_SERVER, whatever the handler made of
     *  it. `item` is the handler's. WB_ABORT when it
     *  is not this item's doing (a deadlock, or what another item deferred failed).
     *  That it was ended comes before all else, also before a connection that was lost since:
     *  the host then knows whose doing it is, and that who ran before keeps its effects.
     *  Whatever check() says, the host claims the ids of a batch that failed once more, and
     *  rolls that back, to see whether a handler committed them; if it was not told whose
     *  doing that was, all of the batch run again. Costs no round trip. */
    int (*check)(wb_storage_session *session, size_t item, wb_error *error);

    /** Send what was deferred, store the operations, give back claims, commit: one
     *  round trip where the database allows.
     *  @return WB_OK; WB_RETRY (with WB_CAUSE_SERVER when it is the server's trouble and
     *  no message's), WB_ABORT, WB_REJECT (rolled back by the callee; see failed_item); WB_NOT_CONNECTED (lost before COMMIT was sent: not committed);
     *  WB_IN_DOUBT (lost after COMMIT was sent). Under a number that has a pending row no second one is
     *  stored, whoever was first: WB_RETRY or WB_ABORT, and the batch runs again under another number.
     *  A handler may have ended the transaction and begun another in a way that check()
     *  cannot see: then nothing is committed, and it is WB_REJECT with any cause but
     *  WB_CAUSE_TOO_LARGE, and with failed_item if it is known whose handler that was. The
     *  host then makes good what that handler committed of others' work: who ran before it
     *  keeps its effects, who ran after it runs again; all run again if it is not known. */
    int (*commit)(wb_storage_session *session, wb_commit *commit, wb_error *error);
    /** Not called after a begin() or a commit() that failed. */
    int (*rollback)(wb_storage_session *session, wb_error *error);

    /** Marks in a transaction of their own; need not be flushed to disk: a lost mark
     *  means a duplicate with the same id and bytes. Marking twice, or what does not
     *  exist, is no error. */
    int (*mark)(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error);

    /** Visit the pending rows of these batches; absent ones are passed over. Outside of
     *  a transaction. */
    int (*pending)(wb_storage_session *session, const uint64_t *batches, size_t count,
                   wb_pending_fn visit, void *argument, wb_error *error);

    /** Visit at most `limit` pending rows with a batch number below `before`, oldest
     *  first, unless another instance is sweeping (then visit none). */
    int (*sweep)(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit,
                 void *argument, wb_error *error);

    /** Delete at most `limit` deduplication records with a batch number below `before`
     *  whose operations are dispatched, unless another instance is cleaning up.
     *  *ret_deleted says how many, so that the host can pace. Fewer than `limit` is not the last of them: the host
     *  calls again until it is 0. */
    int (*clean_up)(wb_storage_session *session, uint64_t before, size_t limit,
                    size_t *ret_deleted, wb_error *error);

    /** Optional. The database's time, nanoseconds since 1970 UTC. Outside of a
     *  transaction. Asked when a session was opened and before each clean-up. */
    int (*clock)(wb_storage_session *session, int64_t *ret_wall, wb_error *error);

    /** Optional, instead of sweep(): visit the oldest pending row with a number above
     *  `after` and below `before`, if there is one, unless another instance is visiting
     *  (then none). Holds one row in memory. The host walks with it from row to row:
     *  rows that stay where they are do not hide those behind them. */
    int (*next_pending)(wb_storage_session *session, uint64_t after, uint64_t before,
                        wb_pending_fn visit, void *argument, wb_error *error);

    /** The delayed message store (sys/delayed.h), with WB_CAP_DELAY_STORE; static. */
    const wb_delayed_ops *delayed;

    /** With WB_CAP_CLAIM_WITH_COMMIT or WB_CAP_REMEMBER. Who has these ids? Fills duplicate_of: the batch number of a
     *  record that is committed, or 0. Claims nothing and waits for nobody: what an open
     *  transaction has claimed is not there yet. Ids as begin() gets them; outside of a
     *  transaction. */
    int (*find)(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error);

    /* For people who look after a running endpoint. Outside of a transaction; they change nothing,
     * take no lock that others wait for, and are kept waiting by nobody. */

    /** Optional. Fill all but struct_size and is_exact. */
    int (*stats)(wb_storage_session *session, wb_outbox_stats *stats, wb_error *error);

    /** Optional. How many deduplication records there are with a number of at least `from` and below
     *  `before` whose operations are dispatched (what clean_up() deletes). Counts no further than
     *  `limit`, and takes as long as that. */
    int (*count_records)(wb_storage_session *session, uint64_t from, uint64_t before, size_t limit,
                         uint64_t *ret_count, wb_error *error);

    /** Optional. Visit pending rows in the order of their numbers, whoever else is at work on them: a
     *  row that comes or goes meanwhile is visited or not. Holds one row in memory, or heads of 1 MiB
     *  together. The visitor does not use the session; what it returns ends the list and is returned. */
    int (*list_pending)(wb_storage_session *session, const wb_pending_filter *filter,
                        wb_pending_fn visit, void *argument, wb_error *error);

    /** Optional. Take a pending row for who is about to dispatch it: of all sessions of all instances
     *  that take rows one has it, until it takes another one, or none (0), or is closed or lost. Waits
     *  for nobody. It concerns nobody but who takes rows: batches, marks and walks go on as ever.
     *  *ret_taken: WB_TAKEN_x. */
    int (*take_pending)(wb_storage_session *session, uint64_t batch, int *ret_taken,
                        wb_error *error);

    /** Messages that programs write in SQL (sys/written.h), with WB_CAP_WRITTEN; static. */
    const wb_written_ops *written;

    /** With WB_CAP_POSITIONS: visit all partitions that have a row. Outside of a transaction. */
    int (*positions)(wb_storage_session *session, wb_position_fn visit, void *argument, wb_error *error);
    /** With WB_CAP_POSITIONS: remove all rows; an operator says that they mean nothing any more.
     *  Outside of a transaction. */
    int (*forget_positions)(wb_storage_session *session, size_t *ret_count, wb_error *error);

    /* Deduplication apart from the outbox: a record is kept here until its operations are dispatched, then
     * its id is remembered by another persistence, and then it goes. At every moment one of the two has it. */

    /** With WB_CAP_FORGET: remove records as wb_begin.forgotten says, outside of a transaction. As with
     *  mark(), it need not be flushed to disk, and what is not there is no error. */
    int (*forget)(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error);
    /** With WB_CAP_REMEMBER: make records of these ids, each of the batch that its duplicate_of says; an id that
     *  has one keeps that. In a transaction of its own, which is durable and seen by every find() of every
     *  session that is called once this has returned WB_OK. Ids as begin() gets them; outside of a
     *  transaction. Whatever else it returns, it is called again with the same ids, which does no harm. */
    int (*remember)(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error);

    /* For who removes or renames an endpoint. Main thread, on an instance without sessions; they connect for
     * themselves, as install() does, and what is done already is no error: whoever died in the middle calls again. */

    /** With WB_CAP_REMOVE_TABLES: remove all that install() has ever made for this endpoint, with what is in it.
     *  Nothing of another endpoint, and no table that only has such a name. */
    int (*uninstall)(wb_persistence *persistence, wb_error *error);
    /** With WB_CAP_REMOVE_TABLES: what install() made for the endpoint `former` becomes this one's, with what is in it,
     *  at once; or, where the database cannot do that at once, in steps of which none loses a row. What programs call in
     *  SQL (sys/written.h) goes, and install() makes it anew. Nothing of `former` is no error.
     *  @return WB_FATAL with WB_CAUSE_MISMATCH when both have tables: nothing was changed. */
    int (*rename)(wb_persistence *persistence, const char *former, wb_error *error);

    /** With WB_CAP_SUBSCRIPTIONS, where wb_endpoint_info.subscriptions is 1: note that these types were subscribed
     *  to or, with `is_over`, that they are so no more. Noted twice is noted. Durable when it returns WB_OK. After install(). */
    int (*note_subscriptions)(wb_persistence *persistence, const char *const *types, size_t count, int is_over,
                              wb_error *error);
    /** With WB_CAP_SUBSCRIPTIONS: visit what is noted; nothing where nothing was ever noted. */
    int (*subscriptions)(wb_persistence *persistence, wb_subscription_fn visit, void *argument, wb_error *error);

    /* Optional, both or neither: what the host has begun with this endpoint, for whoever goes on with it. Both connect
     * for themselves, on an instance without sessions. Without them a queue of somebody else's is not told from one that
     * a rename or an uninstall has begun to take away. */

    /** Keep a number under a name of the host's choice, 1 to 255 printable ASCII characters, in the place of one
     *  that it had; 0: keep none. Durable when it returns WB_OK. Also before install() and of an endpoint without tables; where
     *  nothing of any endpoint is installed there is nothing to keep it in: WB_OK, and it is lost. uninstall() removes
     *  all of the endpoint, rename() those of `former`; install() leaves them alone. On the threads of install(). */
    int (*keep_note)(wb_persistence *persistence, const char *name, int32_t number, wb_error *error);
    /** *ret_number: what is kept under that name, or 0. Needs no more than verify(). On the threads of verify(). */
    int (*look_up_note)(wb_persistence *persistence, const char *name, int32_t *ret_number, wb_error *error);

    /** Optional: see wb_transport_ops.examine. */
    int (*examine)(wb_persistence *persistence, const wb_examination *examination, wb_error *error);
} wb_persistence_ops;

#ifdef __cplusplus
}
#endif
#endif

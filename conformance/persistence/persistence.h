/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the persistence kit share: stores and clients.
 *
 * A store is an endpoint of the kit's own in the plugin's database, opened through the
 * plugin's tables as the core does; its records are gone when a case begins. There are two,
 * named after the endpoint of the file, and they stay: their tables are all that is left
 * behind. A client is one storage session on a store and what it said last.
 *
 * Functions that take a client and return nothing, or whether all went well, check what they do
 * and note a failure of the case; the others return the plugin's class.
 */
#ifndef WB_CONFORMANCE_PERSISTENCE_H
#define WB_CONFORMANCE_PERSISTENCE_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <waybill/sys/failed.h>
#include <waybill/sys/persistence.h>

#include "conformance/kit.h"
#include "conformance/wires.h"
#include "core/base/clock.h"

/** Any call that has not returned by then never will: its case has failed. Longer than the plugins'
 *  own default timeouts for a lock. */
#define WB_CALL_DEADLINE (90 * WB_SECOND)

/** Room for a key of business data. */
#define WB_BUSINESS_KEY 40
/** Of a case, at most. */
#define WB_BUSINESS_KEYS 128

/** Batch numbers as large as those of our days. */
#define WB_BATCH(n) ((UINT64_C(1) << 59) + (n))
/** Of the transactions that only look who has an id; always rolled back. */
#define WB_BATCH_OF_LOOKS ((UINT64_C(1) << 60))
/** In the future, by any clock: of rows that are parked. Nothing below WB_BATCH_OF_LOOKS is. */
#define WB_PARKED(n) ((UINT64_C(1) << 61) + (n))
/** Above all that the kit uses but the largest. */
#define WB_BATCH_END ((uint64_t)INT64_MAX)

typedef struct wb_store {
    char name[256];
    wb_host_instance host;
    wb_endpoint_info info;
    const wb_persistence_ops *ops;
    wb_persistence *instance;
    size_t emptied_for; /* number of the case */
} wb_store;

#define WB_STORES 2
#define WB_PROCESS_SIGNALS 32

/** What a plugin must leave alone (persistence-process.c). */
typedef struct wb_process {
    char directory[4096];
    mode_t mask;
    char locale[256];
    struct sigaction signals[WB_PROCESS_SIGNALS];
    sigset_t blocked;
} wb_process;

/** Memory that all processes of a runner share. A case uses it as it likes; zeroes at first. */
typedef struct wb_board {
    atomic_uint counts[1024];
    atomic_int flag;
    atomic_uint done; /* processes that have done their work; they say so themselves */
    _Alignas(16) unsigned char told[256]; /* what a case tells its processes, and they it */
} wb_board;

typedef struct wb_stores_kit {
    wb_kit kit; /* first: a case gets a pointer to it */
    wb_store stores[WB_STORES];
    wb_process process; /* as it was before the plugin was used */
    wb_wires wires;     /* as they were */
    int is_behind_failure; /* another runner ended with a case that failed, or died in it */
    pid_t nursery_pid;
    int nursery; /* the way to it; -1: there is none (nursery.c) */
    wb_board *board;
    int has_business; /* the place for it was made */
    char keys[WB_BUSINESS_KEYS][WB_BUSINESS_KEY]; /* that the case has made */
    size_t key_count;
} wb_stores_kit;

/** Where the store finds what was fetched, by ids that are short; of others it is not kept. */
typedef struct wb_places {
    size_t count;
    struct {
        char id[8];
        uint64_t place;
    } of[32];
} wb_places;

typedef struct wb_client {
    wb_kit *kit;
    const wb_persistence_ops *ops;
    wb_store *store;
    wb_storage_session *session;
    wb_error error; /* of the last call */
    wb_places places;
} wb_client;

/* ---- stores (store.c) ------------------------------------------------------------------ */

/** An instance for an endpoint of that name; NULL: it was noted. */
wb_persistence *wb_store_create(wb_kit *kit, wb_store *store, const char *name);
/** The same for a name that may be refused: nothing is noted. @return what create() said. */
int wb_store_try(wb_kit *kit, wb_store *store, const char *name, int32_t delays, wb_error *error);
/** By whom a store of this plugin has messages delayed. */
int32_t wb_store_delays(const wb_kit *kit);
/** Whether create() or install() has said that there is no place for that name: WB_FATAL, and a text. Then the case is
 *  skipped, also if it goes on with other names. */
int wb_store_refuses(wb_kit *kit, const char *name, int result, const wb_error *error);
/** The same where another delays: WB_DELAYS_BY_x. */
wb_persistence *wb_store_create_with(wb_kit *kit, wb_store *store, const char *name,
                                     int32_t delays);
/** The name of a store of the kit. */
void wb_store_name(wb_kit *kit, size_t which, char *name, size_t size);
/** Another instance for the same endpoint, as another process has; NULL: it was noted. The
 *  kit destroys it. */
wb_store *wb_store_again(wb_kit *kit, size_t which);
void wb_stores_close(wb_stores_kit *kit);

void wb_process_note(wb_process *process);

/* ---- clients (client.c) ----------------------------------------------------------------- */

/** A session on a store of the kit, whose records are gone if it is the first of the case; or
 *  on another instance. NULL: it was noted. The kit closes it. */
wb_client *wb_client_open(wb_kit *kit, size_t which);
wb_client *wb_client_open_on(wb_kit *kit, wb_store *store);
/** As above, again and again until a server that restarts is there. */
wb_client *wb_client_open_patiently(wb_kit *kit, wb_store *store);
/** As wb_client_open(), with a connection that is its own: where the plugin keeps some, those are given away until one
 *  is new since *ret_before. NULL: it was noted, or the case is skipped. */
wb_client *wb_client_open_wired(wb_kit *kit, wb_wires *ret_before);
/** Now, rather than when the case is over. */
void wb_client_close(wb_client *client);

/** Note a failure, with what the plugin said, unless `result` is `wanted`. @return whether it is. */
int wb_client_check(wb_client *client, int result, int wanted, const char *doing);

int wb_client_begin(wb_client *client, uint64_t batch, wb_claim *claims, size_t count);
/** Again and again while it is WB_RETRY with WB_CAUSE_SERVER, as above. */
int wb_client_begin_patiently(wb_client *client, uint64_t batch, wb_claim *claims, size_t count);
int wb_client_begin_marking(wb_client *client, uint64_t batch, wb_claim *claims, size_t count,
                            const wb_mark *marks, size_t mark_count);
int wb_client_commit(wb_client *client, uint64_t batch, const void *operations, size_t size);
int wb_client_commit_releasing(wb_client *client, uint64_t batch, const void *operations,
                               size_t size, const wb_claim *released, size_t released_count);
int wb_client_rollback(wb_client *client);
int wb_client_mark(wb_client *client, uint64_t batch, const void *remaining, size_t size);
int wb_client_clean_up(wb_client *client, uint64_t before, size_t limit, size_t *ret_deleted);

/** Rows that a sweep or a look at pending rows found, in order. A plugin that goes on visiting for
 *  ever is told to stop. */
#define WB_FOUND_MAX 4096
typedef struct wb_found {
    size_t count;
    size_t visits; /* rows that do not fit included */
    uint64_t batches[WB_FOUND_MAX];
    void *operations; /* of the first row; free() it */
    size_t operations_size;
} wb_found;
int wb_client_sweep(wb_client *client, uint64_t before, size_t limit, wb_found *found);
int wb_client_pending(wb_client *client, const uint64_t *batches, size_t count, wb_found *found);
/** At most one row; the plugin has next_pending(). */
int wb_client_next(wb_client *client, uint64_t after, uint64_t before, wb_found *found);

/** Skip the case by the name of the optional function that the plugin lacks. */
#define WB_LACKS(kit, function)                                                                    \
    wb_kit_lacks((kit), WB_HAS((const wb_persistence_ops *)(kit)->plugin->ops,                     \
                               wb_persistence_ops, function), #function)

/** Begin, claiming one id or those of an array that must all become ours. */
int wb_client_takes(wb_client *client, uint64_t batch, wb_claim *claims, size_t count);
/** A row without a claim: how a host parks operations, and notes attempts. */
int wb_client_parks(wb_client *client, uint64_t batch, const char *operations);
/** A whole batch of one id; with operations unless they are NULL. */
int wb_client_stores(wb_client *client, uint64_t batch, const char *id, const char *operations);
/** Whether a transaction that claims the id now is told `owner`: 0, it would be its own. */
int wb_client_finds_owner(wb_client *client, const void *id, size_t size, uint64_t owner);
/** The same behind a process that died or a connection that broke: whose claims they were may be known when a lease
 *  ends only. Until then it is the server's fault, within WB_CALL_DEADLINE. */
int wb_client_finds_owner_soon(wb_client *client, const void *id, size_t size, uint64_t owner);
/** Whether the pending row is there with these bytes, or, with NULL, is not there. */
int wb_client_finds_pending(wb_client *client, uint64_t batch, const void *operations, size_t size);
/** Delete every record, pending or not. */
int wb_client_empties(wb_client *client);

/* ---- processes in which the plugin has not run (nursery.c, stranger.c, victim.c) ----------- */

/** What the nursery does, with a copy of the argument. */
typedef void (*wb_nursery_fn)(wb_kit *kit, void *argument);
/** What a stranger does, with a session on an instance of its own; `which`: 0, 1... */
typedef void (*wb_stranger_fn)(wb_client *client, unsigned which, wb_board *board);

/** Before anything of the plugin runs. */
void wb_nursery_begin(wb_stores_kit *kit);
void wb_nursery_end(wb_stores_kit *kit);
wb_board *wb_board_of(wb_kit *kit);
/** Have work done there, and wait for its end. The copy of the argument comes back. It and the processes it
 *  makes have the kit as it was before the first case, but for which case it is: all else is told over the board.
 *  @return whether it was done. */
int wb_nursery_do(wb_kit *kit, wb_nursery_fn work, void *argument, size_t size);
/** Have so many live at once, and wait for their end. @return whether all went well in each. */
int wb_strangers_run(wb_kit *kit, unsigned count, wb_stranger_fn live);
/** A stranger lives, and is killed without closing anything. @return whether it got as far. */
int wb_victim_run(wb_kit *kit, void (*live)(wb_client *victim));

/* ---- business data (business.c) ----------------------------------------------------------- */

/** Skip the case where no module about it was given; otherwise make the place for it.
 *  @return whether it does not apply. */
int wb_business_lacks(wb_kit *kit);
/** A key that nobody has. It is removed when the case is over. */
void wb_business_key(wb_kit *kit, char key[WB_BUSINESS_KEY]);
/** Write it in the transaction that is open. @return whether it went well. */
int wb_business_writes(wb_client *client, const char *key);
/** Whether the key is there for the next transaction of the session: 1 or 0, as it must be. */
int wb_business_finds(wb_client *client, const char *key, int is_there);

/** A claim of a string. */
#define WB_CLAIM(text) ((wb_claim){ (text), sizeof(text) - 1, 0 })
/** What begin() must have overwritten. */
#define WB_NOT_ANSWERED UINT64_MAX

/* ---- the cases, by topic ---------------------------------------------------------------- */

typedef struct wb_kit_group {
    const wb_kit_case *cases;
    size_t count;
} wb_kit_group;

#define WB_KIT_GROUP(cases) { (cases), sizeof(cases) / sizeof *(cases) }

extern const wb_kit_group wb_cases_descriptor, wb_cases_schema, wb_cases_transactions,
    wb_cases_claims, wb_cases_ids, wb_cases_operations, wb_cases_marks, wb_cases_sweep,
    wb_cases_walk, wb_cases_parked, wb_cases_clean_up, wb_cases_clock, wb_cases_fault, wb_cases_threads,
    wb_cases_specs, wb_cases_victim, wb_cases_lost, wb_cases_process, wb_cases_delayed,
    wb_cases_delayed_lease, wb_cases_delayed_list, wb_cases_delayed_model, wb_cases_delayed_pairs,
    wb_cases_delayed_between, wb_cases_delayed_lost, wb_cases_delayed_commit, wb_cases_late, wb_cases_look,
    wb_cases_take, wb_cases_written, wb_cases_failed, wb_cases_positions, wb_cases_forget, wb_cases_remember, wb_cases_again, wb_cases_business,
    wb_cases_inside, wb_cases_between, wb_cases_removal;

#endif

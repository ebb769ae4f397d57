/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: what a handler's call is for a message, for a program. Its id is claimed with the commit, so that
 * whoever looks at its control message meanwhile waits for one round trip at most.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/message/given.h"
#include "core/message/ids.h"
#include "core/message/session_control.h"
#include "core/pipeline/close_id.h"
#include "core/pipeline/defer.h"
#include "core/session/closed_keys.h"
#include "core/session/dispatcher.h"
#include "core/session/pool.h"
#include "core/session/sessions.h"

/* How long a connection of the pool is waited for, if nothing is said. */
#define PATIENCE (30 * WB_SECOND)
/* Between two tries to learn what became of a commit. */
#define PAUSE_MIN (20 * WB_MILLISECOND)
#define PAUSE_MAX (1 * WB_SECOND)

struct wb_sessions {
    wb_pipeline *pipeline;
    wb_sessions_policy policy;
    wb_pool pool;
    wb_dispatcher dispatcher;
    wb_closed_keys closed_keys;
};

struct wb_session {
    wb_context context; /* first: the program's pointer is ours */
    wb_sessions *all;
    wb_place *place;
    wb_parcel *parcel; /* its memory, and what it sends; the dispatcher's after the commit */
    char id[WB_ID_MAX + 1];
    size_t id_size;
    int has_key;  /* the id was given */
    int is_begun; /* its transaction */
    int is_tried; /* the commit was sent */
    int64_t numbered; /* when it got the number of its batch; monotonic */
    int is_over;  /* committed, or failed to */
    uint64_t batch;
    uint64_t replaces; /* the number of the record that closed the key when it was opened; 0: none is known */
    wb_buffer encoded;
    wb_error failure; /* what was refused or failed first; it is not committed then */
};

static wb_session *session_of(wb_context *ctx)
{
    return (wb_session *)ctx;
}

static int fail(wb_session *s, const wb_error *error)
{
    if (s->failure.result == WB_OK)
        s->failure = *error;
    return error->result;
}

/* ---- the transaction --------------------------------------------------------------------- */

/* The state of a connection that a call failed on for good, or that may be anything, is nobody's. */
static int believe(wb_session *s, int result, wb_error *error)
{
    error->result = result;
    if (result == WB_NOT_CONNECTED || result == WB_IN_DOUBT || result == WB_FATAL) {
        wb_place_drop_storage(&s->all->pool, s->place);
        s->is_begun = 0;
    }
    return result;
}

static int begin_once(wb_session *s, wb_error *error)
{
    wb_pipeline *p = s->all->pipeline;
    wb_begin begin = { .struct_size = sizeof begin, .batch = wb_pipeline_batch_number(p) };
    int r = wb_place_open_storage(&s->all->pool, s->place, error);
    if (r == WB_OK)
        r = believe(s, p->persistence_ops->begin(s->place->storage, &begin, error), error);
    s->is_begun = r == WB_OK;
    return error->result = r;
}

/* Nothing was done yet: a connection that was kept may be one of a server's earlier life. */
static int begin(wb_session *s, wb_error *error)
{
    const int is_kept = s->place->storage != NULL;
    int r = s->is_begun ? WB_OK : begin_once(s, error);
    return r == WB_NOT_CONNECTED && is_kept ? begin_once(s, error) : r;
}

static void roll_back(wb_session *s)
{
    wb_error ignored;
    if (s->is_begun)
        (void)believe(s, s->all->pipeline->persistence_ops->rollback(s->place->storage, &ignored), &ignored);
    s->is_begun = 0;
}

/* ---- what programs see -------------------------------------------------------------------- */

static int send_once(wb_session *s, wb_operation *operation, wb_error *error)
{
    wb_outlet *outlet = &s->place->outlet;
    wb_window window = { &operation, 1, 1, &s->parcel->arena };
    int r = wb_place_open_outlet(&s->all->pool, s->place, error);
    if (r != WB_OK)
        return r;
    outlet->patience = s->all->policy.commit_duration;
    outlet->until = wb_clock_monotonic() + outlet->patience;
    r = wb_window_send(&window, outlet, error);
    if (r != WB_OK)
        wb_place_drop_outlet(&s->all->pool, s->place);
    return r;
}

/* As with the database: the second time with the same id. */
static int send_immediately(wb_session *s, wb_operation *operation, wb_error *error)
{
    const int is_kept = s->place->outlet.session != NULL;
    int r = send_once(s, operation, error);
    if (r == WB_NOT_CONNECTED && is_kept)
        r = send_once(s, operation, error);
    if (r == WB_OK && operation->result == WB_REJECT)
        return wb_error_set(error, WB_REJECT, operation->cause, 0, "cannot send to \"%s\": %s", operation->destination,
                            operation->reason ? operation->reason : "refused");
    return error->result = r;
}

typedef struct outgoing_call {
    wb_session *session;
    int kind;
    const wb_outgoing *outgoing;
    size_t size;
    wb_error error;
} outgoing_call;

static void add_outgoing(void *argument)
{
    outgoing_call *c = argument;
    wb_session *s = c->session;
    wb_operation_list alone = { 0 };
    const int is_immediate = (c->outgoing->flags & WB_IMMEDIATE) != 0;
    int r = wb_outgoing_add(&s->all->pipeline->origin, c->kind, c->outgoing, c->size, NULL, 0, &s->parcel->arena,
                            is_immediate ? &alone : &s->parcel->operations, &c->error);
    if (r == WB_OK && is_immediate)
        r = send_immediately(s, &alone.first->operation, &c->error);
    c->error.result = r;
}

/* An operation that memory was too short for may be half made: the session has failed. */
static int context_outgoing(wb_context *ctx, int kind, const wb_outgoing *outgoing, size_t size)
{
    outgoing_call call = { session_of(ctx), kind, outgoing, size, { .result = WB_OK } };
    if (call.session->is_over)
        return WB_REJECT;
    if (wb_outgoing_check_size(size, &call.error) == WB_OK && wb_memory_try(add_outgoing, &call) < 0)
        (void)wb_error_set(&call.error, WB_RETRY, WB_CAUSE_SERVER, 0, "out of memory");
    return call.error.result == WB_OK ? WB_OK : fail(call.session, &call.error);
}

static wb_header copy_header(const wb_header *from, wb_arena *arena)
{
    return (wb_header){ .name = wb_arena_copy(arena, from->name, from->name_size),
                        .value = wb_arena_copy(arena, from->value, from->value_size),
                        .name_size = from->name_size,
                        .value_size = from->value_size };
}

int64_t wb_sessions_body_max(const wb_sessions *sessions)
{
    return sessions->pipeline->body_max;
}

void wb_sessions_add(wb_session *s, const wb_operation *from)
{
    wb_arena *arena = &s->parcel->arena;
    wb_operation *operation = wb_operation_append(&s->parcel->operations, arena);
    wb_header *headers = wb_arena_alloc(arena, (from->header_count + 1) * sizeof *headers);
    for (size_t i = 0; i < from->header_count; i++)
        headers[i] = copy_header(&from->headers[i], arena);
    operation->kind = from->kind;
    operation->flags = from->flags;
    operation->destination = wb_arena_copy(arena, from->destination, strlen(from->destination));
    operation->id = wb_arena_copy(arena, from->id, from->id_size);
    operation->id_size = from->id_size;
    operation->headers = headers;
    operation->header_count = from->header_count;
    operation->body = wb_arena_copy(arena, from->body, from->body_size);
    operation->body_size = from->body_size;
    operation->key = from->key_size ? wb_arena_copy(arena, from->key, from->key_size) : NULL;
    operation->key_size = from->key_size;
}

static const void *context_storage(wb_context *ctx, const char *name, void **ret_session, size_t *ret_item)
{
    wb_session *s = session_of(ctx);
    wb_error error = { 0 };
    if (s->is_over)
        return NULL;
    if (begin(s, &error) != WB_OK) {
        (void)fail(s, &error);
        return NULL;
    }
    *ret_session = s->place->storage;
    *ret_item = 0;
    return s->all->pipeline->persistence_ops->interface(s->place->storage, name);
}

static int context_fail(wb_context *ctx, int result, const char *reason)
{
    wb_session *s = session_of(ctx);
    wb_error error;
    if (result == WB_OK)
        return WB_OK;
    (void)wb_error_set(&error, result, WB_CAUSE_OTHER, 0, "%s", reason);
    (void)fail(s, &error);
    return s->failure.result; /* what was first: that there is no connection, not what follows from it */
}

static int context_give_up(wb_context *ctx, const char *queue, const char *reason)
{
    (void)queue; /* there is no message to be moved */
    return context_fail(ctx, WB_REJECT, reason);
}

static int context_retry_after(wb_context *ctx, int64_t delay, const char *reason)
{
    (void)delay;
    return context_fail(ctx, WB_RETRY, reason);
}

static void context_log(wb_context *ctx, int level, const char *text)
{
    const wb_session *s = session_of(ctx);
    wb_log_event(level, text, { "endpoint", s->all->pipeline->endpoint }, { "session_id", s->id });
}

static const char *context_endpoint_name(wb_context *ctx)
{
    return session_of(ctx)->all->pipeline->endpoint;
}

/* No handler, and so no module, whose hooks could have left something. */
static void *context_data(wb_context *ctx, int whose)
{
    (void)ctx, (void)whose;
    return NULL;
}

static const wb_setting_entry *context_settings(wb_context *ctx, size_t *ret_count)
{
    return wb_hooks_settings(&session_of(ctx)->all->pipeline->hooks, ret_count);
}

static const wb_handler_api session_api = {
    .struct_size = sizeof(wb_handler_api),
    .outgoing = context_outgoing,
    .storage = context_storage,
    .failure = context_fail,
    .log = context_log,
    .endpoint_name = context_endpoint_name,
    .give_up = context_give_up,
    .retry_after = context_retry_after,
    .settings = context_settings,
    .data = context_data,
};

wb_context *wb_session_context(wb_session *s)
{
    return &s->context;
}

const char *wb_session_id(const wb_session *s)
{
    return s->id;
}

/* ---- open and close ------------------------------------------------------------------------ */

static int set_id(wb_session *s, const wb_session_options *options, wb_error *error)
{
    size_t size = options->id_size;
    if (wb_given_name("a session's id", options->id, &size, error) != WB_OK)
        return WB_REJECT;
    if (!options->id) {
        wb_id_generate(s->id);
        s->id_size = strlen(s->id);
        return WB_OK;
    }
    if (size > WB_ID_MAX)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "a session's id has 1 to %d bytes, not %zu", WB_ID_MAX,
                            size);
    s->id_size = size;
    memcpy(s->id, options->id, size);
    s->has_key = 1;
    s->replaces = wb_closed_keys_find(&s->all->closed_keys, s->id, s->id_size); /* what closes it from now on is for this one, too */
    return WB_OK;
}

int wb_sessions_open(wb_sessions *all, const wb_session_options *options, wb_session **ret_session, wb_error *error)
{
    wb_session *s = *ret_session = wb_alloc_zero(1, sizeof *s);
    s->context.api = &session_api;
    s->all = all;
    s->parcel = wb_parcel_new();
    int r = set_id(s, options, error);
    if (r == WB_OK && !(s->place = wb_pool_take(&all->pool, options->patience ? options->patience : PATIENCE)))
        r = wb_error_set(error, WB_RETRY, WB_CAUSE_SERVER, 0,
                         "all %u connections of the endpoint's sessions are in use (session.connections)",
                         all->policy.connections);
    if (r == WB_OK)
        r = error->result = wb_place_open_storage(&all->pool, s->place, error);
    if (r == WB_OK)
        return WB_OK;
    wb_session_close(s);
    *ret_session = NULL;
    return r;
}

void wb_session_close(wb_session *s)
{
    if (!s)
        return;
    roll_back(s);
    if (s->place)
        wb_pool_give(&s->all->pool, s->place);
    wb_parcel_free(s->parcel);
    wb_buffer_free(&s->encoded);
    free(s);
}

/* ---- commit ---------------------------------------------------------------------------------- */

static int send_control(wb_session *s, wb_error *error)
{
    const wb_sessions_policy *policy = &s->all->policy;
    const wb_session_control control = { policy->commit_duration, policy->delay_increment, 1, s->replaces };
    wb_operation_list alone = { 0 };
    wb_operation *operation = wb_session_control_operation(policy->processor, s->id, s->id_size, &control,
                                                           &s->parcel->arena, &alone);
    wb_crash_point("session_before_control");
    int r = send_immediately(s, operation, error);
    wb_crash_point("session_after_control");
    if (r == WB_OK)
        return WB_OK;
    wb_error cause = *error;
    return wb_error_set(error, r == WB_REJECT ? WB_REJECT : WB_NOT_CONNECTED, cause.cause, cause.native_code,
                        "could not send the session's control message, so that nothing was committed: %.800s", cause.text);
}

/* What is due later goes into the store with the rest, where it can. */
static void collect_delayed(wb_session *s, wb_commit *commit)
{
    wb_pipeline *p = s->all->pipeline;
    const size_t most = s->parcel->operations.count;
    if (!p->stores_with_commit || !most)
        return;
    wb_delayed *rows = wb_arena_alloc(&s->parcel->arena, most * sizeof *rows);
    commit->delayed_count = wb_defer_take(&s->parcel->operations, wb_pipeline_due_now(p), &s->parcel->arena,
                                          &s->encoded, rows);
    commit->delayed = rows;
}

static void encode(wb_session *s, wb_commit *commit)
{
    wb_operations_encode_start(&s->encoded);
    if (!wb_operations_encode_group(&s->encoded, s->id, s->id_size, &s->parcel->operations))
        return;
    commit->operations = s->encoded.data;
    commit->operations_size = s->encoded.size;
}

/* Its program is told, and may use the key again. */
static void note_closed(wb_session *s, uint64_t number)
{
    if (s->has_key)
        wb_closed_keys_note(&s->all->closed_keys, s->id, s->id_size, number);
}

/* Whoever has the id: a session with the same key, or who closed it. An id that is closed is a key whose session came
 * too late, or failed behind its control message: whoever is told so may use the key again, and replaces what closed it. */
static int explain(wb_session *s, uint64_t owner, wb_error *error)
{
    const int is_closed = wb_batch_number_is_closed(owner);
    if (is_closed)
        note_closed(s, owner);
    return wb_error_set(error, WB_REJECT, is_closed ? WB_CAUSE_EXPIRED : WB_CAUSE_DUPLICATE, 0,
                        is_closed ? "the session was not committed within session.maximum_commit_duration: its id is closed"
                                  : "a session with this id was committed before, and that stands");
}

/* Nothing was committed: is that because of the id? Business data with the same key may have failed first. */
static int look_for_owner(wb_session *s, int result, wb_error *error)
{
    wb_claim claim = { s->id, s->id_size, 0 };
    wb_error ignored;
    const int is_answered = s->is_tried && result == WB_NOT_CONNECTED; /* by resolve_doubt() */
    if (is_answered || result == WB_IN_DOUBT || result == WB_FATAL || !s->place->storage || (!s->has_key && !s->parcel->operations.count) ||
        believe(s, s->all->pipeline->persistence_ops->find(s->place->storage, &claim, 1, &ignored), &ignored) != WB_OK ||
        !claim.duplicate_of || claim.duplicate_of == s->replaces) /* that would not have kept it from committing */
        return result;
    return explain(s, claim.duplicate_of, error);
}

/* A claim waits for the commit if that has come as far; if not it may still be on its way, through a proxy or behind a
 * statement that waits: the id is closed, so that it fails when it comes. */
static int ask(wb_session *s, uint64_t *ret_owner, wb_error *error)
{
    int r = wb_place_open_storage(&s->all->pool, s->place, error);
    *ret_owner = wb_batch_number_closed(wb_pipeline_now(s->all->pipeline), 0);
    if (wb_bug("doubt_not_closed"))
        return r;
    return r == WB_OK ? believe(s, wb_close_id(s->all->pipeline, s->place->storage, s->id, s->id_size, ret_owner, error),
                                error)
                      : r;
}

static int resolve_doubt(wb_session *s, wb_error *error)
{
    const int64_t until = wb_clock_monotonic() + s->all->policy.commit_duration;
    uint64_t owner = 0;
    wb_error why = *error, problem = { 0 };
    for (unsigned tries = 0; ask(s, &owner, &problem) != WB_OK; tries++) {
        if (wb_clock_monotonic() >= until)
            return error->result = WB_IN_DOUBT;
        wb_clock_pause(wb_clock_backoff(PAUSE_MIN, tries, PAUSE_MAX), NULL);
    }
    if (owner == s->batch)
        return WB_OK;
    if (!wb_batch_number_is_closed(owner))
        return explain(s, owner, error);
    note_closed(s, owner);
    return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, why.native_code,
                        "the connection broke during the commit, and nothing was committed: %.900s", why.text);
}

static int commit_storage(wb_session *s, wb_commit *commit, wb_error *error)
{
    const wb_claim claim = { s->id, s->id_size, s->replaces };
    commit->batch = s->batch;
    /* a delayed message alone is all in the store: its own key makes it one, but the id tells what became of it */
    if ((s->has_key || s->parcel->operations.count) && !wb_bug("session_without_claim")) {
        commit->claims = &claim;
        commit->claim_count = 1;
    }
    wb_crash_point("session_before_commit");
    s->is_tried = 1;
    int r = believe(s, s->all->pipeline->persistence_ops->commit(s->place->storage, commit, error), error);
    s->is_begun = 0;
    return r == WB_IN_DOUBT && commit->claim_count ? error->result = resolve_doubt(s, error) : r;
}

/* It is committed: nothing may fail any more, for want of memory neither. */
static void hand_over(wb_session *s, const wb_commit *commit)
{
    wb_parcel *parcel = s->parcel;
    for (size_t i = 0; i < commit->delayed_count; i++)
        wb_alarm_tell(&s->all->pipeline->alarm, commit->delayed[i].due);
    if (!commit->operations)
        return;
    parcel->batch = s->batch;
    memcpy(parcel->id, s->id, sizeof parcel->id);
    parcel->id_size = s->id_size;
    parcel->size = commit->operations_size;
    parcel->numbered = s->numbered;
    s->parcel = NULL;
    wb_dispatcher_give(&s->all->dispatcher, parcel);
}

/* Did the business statements leave the transaction as it was? */
static int check(wb_session *s, wb_error *error)
{
    if (s->failure.result != WB_OK) {
        *error = s->failure;
        return error->result;
    }
    const wb_persistence_ops *ops = s->all->pipeline->persistence_ops;
    return s->is_begun && ops->check ? believe(s, ops->check(s->place->storage, 0, error), error) : WB_OK;
}

static int commit(wb_session *s, wb_error *error)
{
    int r = check(s, error);
    if (r != WB_OK)
        return r;
    wb_commit commit = { .struct_size = sizeof commit, .failed_item = SIZE_MAX };
    collect_delayed(s, &commit);
    encode(s, &commit);
    s->numbered = wb_clock_monotonic();
    s->batch = wb_pipeline_batch_number(s->all->pipeline); /* of now: however long it was open, the row is young */
    if (commit.operations && s->all->policy.sends_control && !wb_bug("control_not_sent") && (r = send_control(s, error)) != WB_OK)
        return r;
    if ((r = begin(s, error)) != WB_OK || (r = commit_storage(s, &commit, error)) != WB_OK)
        return r;
    wb_crash_point("session_committed");
    hand_over(s, &commit);
    return WB_OK;
}

int wb_sessions_commit(wb_session *s, wb_error *error)
{
    if (s->is_over)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "the session is over: it was committed, or failed to be");
    s->is_over = 1;
    int r = commit(s, error);
    roll_back(s);
    if (r != WB_OK)
        r = look_for_owner(s, r, error);
    return error->result = r;
}

/* ---- all of them ------------------------------------------------------------------------------ */

int64_t wb_sessions_now(const wb_sessions *sessions)
{
    return wb_pipeline_now(sessions->pipeline);
}

int wb_sessions_start(wb_pipeline *pipeline, const wb_sessions_policy *policy, wb_sessions **ret_sessions,
                      wb_error *error)
{
    wb_sessions *all = wb_alloc_zero(1, sizeof *all);
    wb_memory_held held;
    wb_memory_hold(&held, free, all);
    all->pipeline = pipeline;
    all->policy = *policy;
    wb_pool_init(&all->pool, pipeline, policy->connections);
    wb_memory_let_go(&held);
    wb_closed_keys_init(&all->closed_keys);
    int code = wb_dispatcher_start(&all->dispatcher, pipeline);
    if (code == 0) {
        *ret_sessions = all;
        return WB_OK;
    }
    wb_sessions_stop(all, 0);
    return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, code, "could not start the dispatcher of sessions: %s",
                        strerror(code));
}

void wb_sessions_stop(wb_sessions *all, int64_t patience)
{
    if (!all)
        return;
    wb_dispatcher_stop(&all->dispatcher, patience);
    wb_pool_free(&all->pool);
    wb_closed_keys_free(&all->closed_keys);
    free(all);
}

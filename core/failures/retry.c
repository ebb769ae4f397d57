/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/failures/retry.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/crash.h"
#include "core/failures/edit.h"
#include "core/failures/record.h"
#include "core/message/header_names.h"

typedef struct retrying {
    const wb_sessions *sessions;
    wb_session *session;
    const wb_failed_ops *ops;
    wb_storage_session *storage;
    const char *queue;
    wb_failed_retry *one;
    int64_t body_max;
    size_t sent, unread, bytes;
    int is_full; /* `one` is for the next lot */
    wb_error *error;
} retrying;

static wb_header make_header(const char *name, const char *value, size_t size)
{
    return (wb_header){ .name = name, .value = value, .name_size = strlen(name), .value_size = size };
}

/* As it came to the endpoint that could not handle it, or edited. */
static void send_back(const retrying *r, const wb_operation *kept, wb_arena *arena)
{
    wb_operation operation = *kept;
    wb_header *headers = wb_arena_alloc(arena, (kept->header_count + 2) * sizeof *headers);
    size_t count = 0;
    for (size_t i = 0; i < kept->header_count; i++)
        if (!wb_failed_is_of_failure(&kept->headers[i]))
            headers[count++] = kept->headers[i];
    headers[count++] = make_header(WB_HEADER_RETRY_UNIQUE_ID, r->one->key, r->one->key_size);
    headers[count++] = make_header(WB_HEADER_RETRY_ACKNOWLEDGEMENT_QUEUE, r->queue, strlen(r->queue));
    operation.headers = headers;
    operation.header_count = count;
    if (r->one->edit)
        wb_failed_edit_apply(r->one->edit, r->one->key, r->one->key_size, &operation, arena);
    wb_sessions_add(r->session, &operation);
}

static size_t size_of(const wb_operation *operation)
{
    size_t size = operation->body_size;
    for (size_t i = 0; i < operation->header_count; i++)
        size += operation->headers[i].name_size + operation->headers[i].value_size;
    return size;
}

static void send_back_if_it_fits(retrying *r, const wb_operation *kept, wb_arena *arena)
{
    const size_t size = size_of(kept);
    r->is_full = r->sent && r->bytes + size > WB_FAILED_RETRY_BYTES;
    if (r->is_full)
        return;
    send_back(r, kept, arena);
    r->sent++;
    r->bytes += size;
}

static int take(void *argument, const wb_failed *failed)
{
    retrying *r = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    r->one->unread = r->one->edit && r->one->edit->has_body
                         ? wb_failed_decode(failed->message, failed->message_size, &arena, &record)
                         : wb_failed_decode_whole(failed->message, failed->message_size, r->body_max, &arena, &record);
    if (r->one->unread)
        r->unread++;
    else
        send_back_if_it_fits(r, record.operation, &arena);
    wb_arena_free(&arena);
    return WB_OK;
}

static int change_status(retrying *r, wb_failed_retry *one, int32_t from, int32_t to, int *ret_was)
{
    const wb_failed_turn turn = { .struct_size = sizeof turn, .key = one->key, .key_size = one->key_size,
                                  .from = from, .to = to, .now = wb_sessions_now(r->sessions) };
    return r->ops->turn(r->storage, &turn, ret_was, r->error);
}

/* One that cannot be read is no reason to leave the others of the lot; one that has no room in it is for the next: its size is known
 * when it is read, and it is read when nobody else can change it. */
static int let_wait(retrying *r, wb_failed_retry *one)
{
    int ignored;
    one->was_waiting = 0;
    return change_status(r, one, WB_FAILED_RETRYING, WB_FAILED_WAITS, &ignored);
}

static int retry_one(retrying *r, wb_failed_retry *one)
{
    r->one = one;
    int result = change_status(r, one, WB_FAILED_WAITS, WB_FAILED_RETRYING, &one->was_waiting);
    if (wb_bug("retry_whatever_status"))
        one->was_waiting = 1;
    if (result != WB_OK || !one->was_waiting)
        return result;
    result = r->ops->get(r->storage, one->key, one->key_size, take, r, r->error);
    return result == WB_OK && (one->unread || r->is_full) ? let_wait(r, one) : result;
}

static int compare_keys(const void *left, const void *right)
{
    const wb_failed_retry *a = left, *b = right;
    return wb_bytes_compare(a->key, a->key_size, b->key, b->key_size);
}

/* Rows are locked in the order of their keys: two operators who retry the same messages wait for each other. */
static int retry_in(retrying *r, wb_failed_retry *retries, size_t count, size_t *ret_taken)
{
    wb_context *ctx = wb_session_context(r->session);
    void *storage = NULL;
    size_t item, taken = 0;
    int result = WB_OK;
    qsort(retries, count, sizeof *retries, compare_keys);
    r->ops = ctx->api->storage(ctx, WB_FAILED_INTERFACE, &storage, &item);
    r->storage = storage;
    while (r->ops && taken < count && result == WB_OK && !r->is_full)
        result = retry_one(r, &retries[taken++]);
    *ret_taken = taken - (r->is_full != 0);
    if (result != WB_OK || (r->ops && !r->sent && !r->unread))
        return result; /* also what cannot be read was changed, by which who asks for the rest tells it from that */
    wb_crash_point("retry_before_commit");
    return wb_sessions_commit(r->session, r->error); /* without a connection it says why */
}

int wb_failed_retry_some(wb_sessions *sessions, const char *queue, wb_failed_retry *retries, size_t count, size_t *ret_taken,
                         wb_error *error)
{
    retrying r = { .sessions = sessions, .queue = queue, .body_max = wb_sessions_body_max(sessions), .error = error };
    if (count > WB_FAILED_RETRY_LOT)
        count = WB_FAILED_RETRY_LOT;
    for (size_t i = 0; i < count; i++)
        retries[i].was_waiting = retries[i].unread = 0;
    int result = wb_sessions_open(sessions, &(wb_session_options){ 0 }, &r.session, error);
    if (result != WB_OK)
        return result;
    result = retry_in(&r, retries, count, ret_taken);
    wb_session_close(r.session);
    error->result = result;
    wb_crash_point("retry_after_commit");
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/failures/retry.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/failures/edit.h"
#include "core/failures/record.h"
#include "core/message/header_names.h"

typedef struct retrying {
    wb_session *session;
    const wb_failed_ops *ops;
    wb_storage_session *storage;
    const char *queue;
    const wb_failed_retry *one;
    size_t sent;
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

static int take(void *argument, const wb_failed *failed)
{
    retrying *r = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const int is_read = wb_failed_decode(failed->message, failed->message_size, &arena, &record) == 0;
    if (is_read)
        send_back(r, record.operation, &arena);
    r->sent += is_read != 0;
    wb_arena_free(&arena);
    return is_read ? WB_OK
                   : wb_error_set(r->error, WB_REJECT, WB_CAUSE_OTHER, 0,
                                  "failed message %.*s was kept by a later version, which this one cannot read",
                                  (int)failed->key_size, failed->key);
}

static int retry_one(retrying *r, wb_failed_retry *one)
{
    const wb_failed_turn turn = { .struct_size = sizeof turn, .key = one->key, .key_size = one->key_size,
                                  .from = WB_FAILED_WAITS, .to = WB_FAILED_RETRYING, .now = wb_clock_wall() };
    r->one = one;
    int result = r->ops->turn(r->storage, &turn, &one->was_waiting, r->error);
    if (wb_bug("retry_whatever_status"))
        one->was_waiting = 1;
    if (result != WB_OK || !one->was_waiting)
        return result;
    return r->ops->get(r->storage, one->key, one->key_size, take, r, r->error);
}

static int compare_keys(const void *left, const void *right)
{
    const wb_failed_retry *a = left, *b = right;
    return wb_bytes_compare(a->key, a->key_size, b->key, b->key_size);
}

/* Rows are locked in the order of their keys: two operators who retry the same messages wait for each other. */
static int retry_in(retrying *r, wb_failed_retry *retries, size_t count)
{
    wb_context *ctx = wb_session_context(r->session);
    void *storage = NULL;
    size_t item;
    int result = WB_OK;
    qsort(retries, count, sizeof *retries, compare_keys);
    r->ops = ctx->api->storage(ctx, WB_FAILED_INTERFACE, &storage, &item);
    r->storage = storage;
    for (size_t i = 0; r->ops && i < count && result == WB_OK; i++)
        result = retry_one(r, &retries[i]);
    if (result != WB_OK || (r->ops && !r->sent))
        return result;
    wb_crash_point("retry_before_commit");
    return wb_sessions_commit(r->session, r->error); /* without a connection it says why */
}

int wb_failed_retry_all(wb_sessions *sessions, const char *queue, wb_failed_retry *retries, size_t count, wb_error *error)
{
    retrying r = { .queue = queue, .error = error };
    for (size_t i = 0; i < count; i++)
        retries[i].was_waiting = 0;
    int result = wb_sessions_open(sessions, &(wb_session_options){ 0 }, &r.session, error);
    if (result != WB_OK)
        return result;
    result = retry_in(&r, retries, count);
    wb_session_close(r.session);
    error->result = result;
    wb_crash_point("retry_after_commit");
    return result;
}

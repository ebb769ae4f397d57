/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/failures/ingest.h"

#include <waybill/sys/failed.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/error.h"
#include "core/failures/record.h"
#include "core/message/failed_id.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/pipeline/call.h"
#include "core/pipeline/context.h"

/* A clock that is not read, or not there: when it came is near. */
static int64_t failed_at(const wb_message *message, int64_t now)
{
    int64_t time;
    const wb_header *header = WB_HEADERS_FIND(message->headers, message->header_count, WB_HEADER_TIME_OF_FAILURE);
    return header && wb_clock_parse_wire(header->value, &time) && time > 0 ? time : now;
}

/* Of what size on a body is kept compressed. */
static size_t find_limit(wb_context *ctx)
{
    const wb_call *call = wb_call_of(ctx, "failures");
    return call ? (size_t)call->worker->pipeline->failures_compress_over : 0;
}

/* `now` is the database's, by which rows grow old; when a message failed is told by hosts. */
static int keep(const wb_failed_ops *ops, wb_storage_session *session, const wb_message *message, int64_t now,
                size_t compress_over, wb_error *error)
{
    char key[WB_GENERATED_ID_SIZE];
    wb_buffer summary = { 0 }, whole = { 0 };
    wb_failed_key(message->headers, message->header_count, message->id, message->id_size, key);
    wb_failed_encode(message, compress_over, &summary, &whole);
    const wb_failed failed = { .struct_size = sizeof failed,
                               .key = key,
                               .key_size = strlen(key),
                               .failed_at = failed_at(message, wb_clock_wall()),
                               .changed_at = now,
                               .summary = summary.data,
                               .summary_size = summary.size,
                               .message = whole.data,
                               .message_size = whole.size };
    const int result = ops->put(session, &failed, error);
    wb_buffer_free(&summary);
    wb_buffer_free(&whole);
    wb_crash_point("failure_kept");
    return result;
}

/* What was edited and failed is a failed message of its own: the one it was made of is done with. */
static int supersede(const wb_failed_ops *ops, wb_storage_session *session, const wb_message *message, int64_t now, wb_error *error)
{
    int ignored;
    const wb_header *original = WB_HEADERS_FIND(message->headers, message->header_count, WB_HEADER_EDIT_OF);
    if (!original || !original->value_size || original->value_size > WB_FAILED_KEY_MAX)
        return WB_OK;
    const wb_failed_turn turn = { .struct_size = sizeof turn, .key = original->value, .key_size = original->value_size,
                                  .from = WB_FAILED_RETRYING, .to = WB_FAILED_ARCHIVED, .now = now };
    return ops->turn(session, &turn, &ignored, error);
}

static int read_failed_at(void *argument, const wb_failed *failed)
{
    *(int64_t *)argument = failed->failed_at;
    return WB_OK;
}

/* What was sent twice (its sender died behind the dispatch) may fail and be handled. Handled is handled: only what failed behind
 * that waits. When it failed is asked for when nobody else can change it. */
static int resolve_what_failed_before(const wb_failed_ops *ops, wb_storage_session *session, wb_failed_turn turn, int64_t handled_at,
                                      wb_error *error)
{
    int was;
    int64_t failed_at = INT64_MAX;
    turn.from = WB_FAILED_WAITS;
    int result = ops->turn(session, &turn, &was, error);
    if (result != WB_OK || !was)
        return result;
    result = ops->get(session, turn.key, turn.key_size, read_failed_at, &failed_at, error);
    if (result != WB_OK || failed_at < handled_at)
        return result;
    turn.from = WB_FAILED_RESOLVED;
    turn.to = WB_FAILED_WAITS;
    return ops->turn(session, &turn, &was, error);
}

/* One that is not waited for is no news: somebody else's, or of a message that was discarded since. */
static int resolve(const wb_failed_ops *ops, wb_storage_session *session, const wb_message *message, const wb_header *answer, int64_t now,
                   wb_error *error)
{
    int was;
    int64_t handled_at;
    const wb_header *time = WB_HEADERS_FIND(message->headers, message->header_count, WB_HEADER_RETRY_SUCCESSFUL);
    const wb_failed_turn turn = { .struct_size = sizeof turn, .key = answer->value, .key_size = answer->value_size,
                                  .from = WB_FAILED_RETRYING, .to = WB_FAILED_RESOLVED, .now = now };
    if (!answer->value_size || answer->value_size > WB_FAILED_KEY_MAX)
        return WB_OK;
    const int result = ops->turn(session, &turn, &was, error);
    if (result != WB_OK || was || !time || !wb_clock_parse_wire(time->value, &handled_at))
        return result;
    return resolve_what_failed_before(ops, session, turn, handled_at, error);
}

static int ingest(wb_context *ctx, const wb_message *message)
{
    void *session = NULL;
    size_t item;
    wb_error error = { 0 };
    const wb_failed_ops *ops = ctx->api->storage(ctx, WB_FAILED_INTERFACE, &session, &item);
    const wb_header *answer = wb_failed_answer(message->headers, message->header_count);
    if (!ops)
        return wb_fail(ctx, WB_RETRY, "the persistence does not hand out the table of failed messages");
    const wb_header *queue = WB_HEADERS_FIND(message->headers, message->header_count, WB_HEADER_FAILED_QUEUE);
    if (!answer && !(queue && queue->value_size))
        return wb_fail(ctx, WB_UNRECOVERABLE, "it has no header " WB_HEADER_FAILED_QUEUE ": it is no failed message, or "
                                              "nobody knows where it failed");
    const int64_t now = wb_context_now(ctx);
    int result = answer ? resolve(ops, session, message, answer, now, &error) : keep(ops, session, message, now, find_limit(ctx), &error);
    if (result == WB_OK && !answer)
        result = supersede(ops, session, message, now, &error);
    return result == WB_OK ? WB_OK : wb_fail(ctx, result, "%s", error.text);
}

static const wb_handler handlers[] = { { .type = "*", .one = ingest } };

const wb_handler_module wb_failures_module = {
    .struct_size = sizeof(wb_handler_module),
    .abi_major = WB_HANDLER_ABI_MAJOR,
    .handler_stride = sizeof(wb_handler),
    .handler_count = sizeof handlers / sizeof *handlers,
    .handlers = handlers,
};

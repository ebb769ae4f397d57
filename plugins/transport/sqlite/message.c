/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/sqlite/transport.h"

#define PROBLEM_SIZE 160
/* Ids and keys up to this are of no account; no longer id is ever handled. */
#define NAME_BYTES_MAX ((size_t)64 << 10)
/* What a row may have beside its headers and body: both of them, and SQLite's own bytes. */
#define ROW_OVERHEAD (2 * NAME_BYTES_MAX + 1024)

/* ---- a row, weighed before it is read ----------------------------------------------------- */

/* Columns of the statement, after the number. */
enum { PART_ID, PART_KEY, PART_HEADERS, PART_BODY, PARTS };

typedef struct part {
    const void *data;   /* in the statement's row, or */
    sqlite3_blob *blob; /* withheld by the statement */
    size_t total;
    size_t size; /* what is read of it */
} part;

const char wb_sqlite_message_columns[] = "seq, id, key, headers, body";

/* A value that is small enough, an integer in place of one that is not (or that is text, of
 * which only others make any: its size in bytes cannot be asked without reading it). typeof()
 * and length() of a blob do not read it. Dear, so only rows that are too large are asked so. */
#define WITHIN(column, limit)                                                                      \
    "case typeof(" column ") when 'blob' then iif(length(" column ")<=" limit "," column ",0)"     \
    " when 'text' then 0 when 'null' then null else cast(" column " as blob) end"

const char wb_sqlite_message_columns_weighed[] =
    "seq, " WITHIN("id", "?4") ", " WITHIN("key", "?4") ", " WITHIN("headers", "?5") ", " WITHIN(
        "body", "?6");

static wb_sqlite_codec_limits header_limits(const wb_transport_session *session)
{
    const wb_endpoint_info *endpoint = session->transport->endpoint;
    wb_sqlite_codec_limits limits = { 0 };
    if (WB_HAS(endpoint, wb_endpoint_info, headers_max))
        limits.count = endpoint->headers_max;
    if (WB_HAS(endpoint, wb_endpoint_info, headers_size_max) && endpoint->headers_size_max > 0)
        limits.bytes = (size_t)endpoint->headers_size_max;
    return limits;
}

static size_t body_limit(const wb_transport_session *session)
{
    int64_t limit = session->transport->endpoint->body_max;
    return limit > 0 ? (size_t)limit : SIZE_MAX;
}

static int64_t as_column(size_t limit)
{
    return limit > INT64_MAX ? INT64_MAX : (int64_t)limit;
}

void wb_sqlite_message_bind_limits(const wb_transport_session *session, sqlite3_stmt *statement)
{
    const wb_sqlite_codec_limits limits = header_limits(session);
    (void)sqlite3_bind_int64(statement, 4, as_column(NAME_BYTES_MAX));
    (void)sqlite3_bind_int64(statement, 5, as_column(wb_sqlite_codec_bytes_within(&limits)));
    (void)sqlite3_bind_int64(statement, 6, as_column(body_limit(session)));
}

int wb_sqlite_message_row_max(const wb_transport_session *session)
{
    const wb_sqlite_codec_limits limits = header_limits(session);
    size_t headers = wb_sqlite_codec_bytes_within(&limits);
    size_t body = body_limit(session);
    if (headers >= INT_MAX / 2 || body >= INT_MAX / 2 - ROW_OVERHEAD)
        return INT_MAX;
    return (int)(headers + body + ROW_OVERHEAD);
}

static int open_part(wb_transport_session *session, sqlite3_stmt *row, int number, int is_weighed,
                     part *opened, wb_error *error)
{
    static const char *const names[PARTS] = { "id", "key", "headers", "body" };
    int result = WB_OK;
    if (is_weighed && sqlite3_column_type(row, number + 1) == SQLITE_INTEGER) {
        result = wb_sqlite_large_open(session, sqlite3_column_int64(row, 0), names[number],
                                      &opened->blob, error);
        opened->total = result == WB_OK ? (size_t)sqlite3_blob_bytes(opened->blob) : 0;
    } else {
        opened->data = sqlite3_column_blob(row, number + 1);
        opened->total = opened->data ? (size_t)sqlite3_column_bytes(row, number + 1) : 0;
    }
    opened->size = opened->total;
    return result;
}

static void close_parts(part parts[PARTS])
{
    for (int i = 0; i < PARTS; i++)
        (void)sqlite3_blob_close(parts[i].blob);
}

static int open_parts(wb_transport_session *session, sqlite3_stmt *row, int is_weighed,
                      part parts[PARTS], wb_error *error)
{
    const wb_sqlite_codec_limits limits = header_limits(session);
    const size_t within = wb_sqlite_codec_bytes_within(&limits);
    int result = WB_OK;
    for (int i = 0; result == WB_OK && i < PARTS; i++)
        result = open_part(session, row, i, is_weighed, &parts[i], error);
    if (parts[PART_HEADERS].size > within)
        parts[PART_HEADERS].size = within;
    return result;
}

static int is_large(const wb_transport_session *session, const part parts[PARTS])
{
    return parts[PART_BODY].total > body_limit(session) || parts[PART_ID].total > NAME_BYTES_MAX ||
           parts[PART_KEY].total > NAME_BYTES_MAX;
}

/* ---- a message ------------------------------------------------------------------------------ */

/* Copy a part, behind it a NUL byte; *at moves behind that. */
static int put(wb_transport_session *session, unsigned char **at, const part *from,
               wb_error *error)
{
    int result = WB_OK;
    if (from->blob && from->size)
        result = wb_sqlite_large_read(session, from->blob, *at, from->size, error);
    else if (from->size)
        memcpy(*at, from->data, from->size);
    (*at)[from->size] = '\0';
    *at += from->size + 1;
    return result;
}

static int put_all(wb_transport_session *session, wb_sqlite_message *to, unsigned char *at,
                   const part parts[PARTS], const unsigned char *starts[PARTS], wb_error *error)
{
    int result = WB_OK;
    for (int i = 0; result == WB_OK && i < PARTS; i++) {
        starts[i] = at;
        result = put(session, &at, &parts[i], error);
    }
    to->incoming.struct_size = sizeof(wb_incoming);
    to->incoming.id = parts[PART_ID].size ? (const char *)starts[PART_ID] : NULL;
    to->incoming.id_size = parts[PART_ID].size;
    to->incoming.key = parts[PART_KEY].size ? (const char *)starts[PART_KEY] : NULL;
    to->incoming.key_size = parts[PART_KEY].size;
    to->incoming.body = starts[PART_BODY];
    to->incoming.body_size = parts[PART_BODY].size;
    return result;
}

/* What memory a message takes: in `fixed` the struct, its headers and what is wrong with
 * them, in `bytes` the parts of its row. */
typedef struct plan {
    wb_sqlite_codec_limits limits;
    wb_sqlite_codec_summary summary;
    size_t fixed;
    size_t bytes;
} plan;

static int make_plan(wb_transport_session *session, const part parts[PARTS], plan *made,
                     wb_error *error)
{
    const part *blob = &parts[PART_HEADERS];
    unsigned char first[sizeof(uint32_t)] = { 0 };
    const void *start = blob->data;
    if (blob->blob && blob->size >= sizeof first) {
        int result = wb_sqlite_large_read(session, blob->blob, first, sizeof first, error);
        if (result != WB_OK)
            return result;
        start = first;
    }
    made->limits = header_limits(session);
    made->summary = wb_sqlite_codec_summarize(start, blob->size, blob->total, &made->limits);
    made->fixed = sizeof(wb_sqlite_message) + made->summary.kept * sizeof(wb_header) +
                  (made->summary.is_over ? PROBLEM_SIZE : 0);
    made->bytes = PARTS;
    for (int i = 0; i < PARTS; i++)
        made->bytes += parts[i].size;
    return WB_OK;
}

/* One allocation a message; but the bytes of a large one are apart, since they go as soon as
 * it is acknowledged. */
static wb_sqlite_message *allocate(const plan *by, int is_apart)
{
    wb_sqlite_message *made = malloc(by->fixed + (is_apart ? 0 : by->bytes));
    void *apart = is_apart ? malloc(by->bytes) : NULL;
    if (!made || (is_apart && !apart)) {
        free(made);
        free(apart);
        return NULL;
    }
    *made = (wb_sqlite_message){ .large = apart, .bytes = by->fixed + by->bytes };
    return made;
}

static const char *describe(char *text, const plan *by)
{
    (void)snprintf(text, PROBLEM_SIZE,
                   "it has %zu headers of %zu bytes; the limits are %zu headers and %zu bytes",
                   by->summary.count, by->summary.bytes, by->limits.count, by->limits.bytes);
    return text;
}

static void decode_headers(wb_incoming *to, const unsigned char *blob, size_t size, const plan *by)
{
    wb_header *headers = (wb_header *)(void *)((wb_sqlite_message *)(void *)to + 1);
    to->headers = headers;
    if (by->summary.is_over)
        to->problem = describe((char *)(headers + by->summary.kept), by);
    if (!by->summary.is_damaged && wb_sqlite_codec_decode(blob, size, &by->summary, &by->limits,
                                                          headers, &to->header_count) == 0)
        return;
    to->header_count = 0;
    to->problem = "its headers are damaged";
}

static int build(wb_transport_session *session, int64_t seq, const part parts[PARTS], int is_apart,
                 wb_sqlite_message **ret_message, wb_error *error)
{
    plan by;
    const unsigned char *starts[PARTS];
    int result = make_plan(session, parts, &by, error);
    if (result != WB_OK)
        return result;
    wb_sqlite_message *made = allocate(&by, is_apart);
    if (!made)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    made->seq = seq;
    unsigned char *at = is_apart ? made->large : (unsigned char *)made + by.fixed;
    result = put_all(session, made, at, parts, starts, error);
    if (result != WB_OK) {
        free(made->large);
        free(made);
        return result;
    }
    decode_headers(&made->incoming, starts[PART_HEADERS], parts[PART_HEADERS].size, &by);
    *ret_message = made;
    return WB_OK;
}

int wb_sqlite_message_read(wb_transport_session *session, sqlite3_stmt *row, int is_weighed,
                           int may_be_large, wb_sqlite_message **ret_message, wb_error *error)
{
    part parts[PARTS] = { { 0 } };
    *ret_message = NULL;
    int result = open_parts(session, row, is_weighed, parts, error);
    int apart = result == WB_OK && is_large(session, parts);
    int entered = apart && may_be_large && wb_sqlite_large_enter();
    if (result == WB_OK && (!apart || entered))
        result = build(session, sqlite3_column_int64(row, 0), parts, apart, ret_message, error);
    close_parts(parts);
    if (entered && !*ret_message)
        wb_sqlite_large_leave(session);
    return result;
}

void wb_sqlite_message_hold(wb_transport_session *session, wb_sqlite_message *held)
{
    held->previous = NULL;
    held->next = session->in_hand;
    if (session->in_hand)
        session->in_hand->previous = held;
    session->in_hand = held;
}

void wb_sqlite_message_release_large(wb_transport_session *session, wb_sqlite_message *released)
{
    if (!released->large)
        return;
    free(released->large);
    released->large = NULL;
    wb_sqlite_large_leave(session);
}

void wb_sqlite_message_forget(wb_transport_session *session, wb_sqlite_message *forgotten)
{
    wb_sqlite_claim *owner = forgotten->claim;
    if (forgotten->previous)
        forgotten->previous->next = forgotten->next;
    else
        session->in_hand = forgotten->next;
    if (forgotten->next)
        forgotten->next->previous = forgotten->previous;
    wb_sqlite_message_release_large(session, forgotten);
    free(forgotten);
    if (owner && --owner->held == 0)
        wb_sqlite_claim_forget(session, owner);
}

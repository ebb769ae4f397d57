/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/failures/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/sha256.h"
#include "core/failures/pack.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"

static const char packed_format[4] = { 'W', 'B', 'Z', '1' };
/* That, and the size of the body. */
#define PACKED_HEAD 8

/* ---- writing ---------------------------------------------------------------------------- */

/* Behind what is in the buffer. */
static void encode(const wb_operation *from, wb_buffer *buffer)
{
    wb_arena arena;
    wb_operation_list list = { 0 };
    wb_arena_init(&arena, 1024);
    wb_operation *operation = wb_operation_append(&list, &arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = from->destination;
    operation->id = from->id;
    operation->id_size = from->id_size;
    operation->key = from->key;
    operation->key_size = from->key_size;
    operation->headers = from->headers;
    operation->header_count = from->header_count;
    operation->body = from->body;
    operation->body_size = from->body_size;
    wb_operations_encode_behind(buffer);
    (void)wb_operations_encode_group(buffer, from->id, from->id_size, &list);
    wb_arena_free(&arena);
}

/* @return whether it is kept so. */
static int encode_packed(const wb_operation *whole, wb_buffer *buffer)
{
    wb_memory_held held;
    wb_operation operation = *whole;
    void *packed = wb_failed_pack(whole->body, whole->body_size, &operation.body_size);
    if (!packed)
        return 0;
    wb_memory_hold(&held, free, packed);
    operation.body = packed;
    wb_buffer_put(buffer, packed_format, sizeof packed_format);
    wb_buffer_put_u32(buffer, (uint32_t)whole->body_size);
    encode(&operation, buffer);
    wb_memory_let_go(&held);
    free(packed);
    return 1;
}

static void encode_whole(const wb_operation *operation, size_t compress_over, wb_buffer *buffer)
{
    const int is_large = compress_over && operation->body_size > compress_over;
    buffer->size = 0;
    if (!is_large || !encode_packed(operation, buffer))
        encode(operation, buffer);
}

/* UTF-8 is cut between characters. */
static size_t cut(const char *text, size_t size, size_t max)
{
    if (size <= max)
        return size;
    while (max && ((unsigned char)text[max] & 0xc0) == 0x80)
        max--;
    return max;
}

static size_t summarize(const wb_message *message, wb_header *headers)
{
    static const char *const names[] = { WB_HEADER_TYPES, WB_HEADER_PROCESSING_ENDPOINT, WB_HEADER_EXCEPTION_TYPE,
                                         WB_HEADER_EXCEPTION_MESSAGE };
    size_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const wb_header *found = wb_headers_find(message->headers, message->header_count, names[i], strlen(names[i]));
        if (!found)
            continue;
        headers[count] = *found;
        headers[count].value_size = cut(found->value, found->value_size, WB_FAILED_REASON_MAX);
        count++;
    }
    return count;
}

void wb_failed_encode(const wb_message *message, size_t compress_over, wb_buffer *summary, wb_buffer *whole)
{
    wb_header few[4];
    wb_operation operation = {
        .struct_size = sizeof operation,
        .destination = WB_HEADERS_FIND(message->headers, message->header_count, WB_HEADER_FAILED_QUEUE)->value,
        .id = message->id,
        .id_size = message->id_size,
        .key = message->key,
        .key_size = message->key_size,
        .headers = message->headers,
        .header_count = message->header_count,
        .body = message->body,
        .body_size = message->body_size,
    };
    encode_whole(&operation, compress_over, whole);
    operation.headers = few;
    operation.header_count = summarize(message, few);
    operation.body = "";
    operation.body_size = 0;
    encode_whole(&operation, 0, summary);
}

/* ---- reading ---------------------------------------------------------------------------- */

static wb_text value_of(const wb_operation *operation, const char *name)
{
    const wb_header *found = wb_headers_find(operation->headers, operation->header_count, name, strlen(name));
    return found ? (wb_text){ found->value, found->value_size } : (wb_text){ "", 0 };
}

static wb_text type_of(const wb_operation *operation, wb_arena *arena)
{
    char text[WB_TYPE_SIZE];
    const char *type = wb_headers_type(operation->headers, operation->header_count, text);
    const size_t size = type ? strlen(type) : 0;
    return (wb_text){ wb_arena_copy(arena, type ? type : "", size), size };
}

/* What differs from message to message in the same words is mostly a number. */
static void hash_reason(wb_sha256 *hash, wb_text reason)
{
    for (size_t i = 0; i < reason.size; i++) {
        const int is_digit = reason.value[i] >= '0' && reason.value[i] <= '9';
        if (!is_digit)
            wb_sha256_update(hash, &reason.value[i], 1);
        else if (!i || reason.value[i - 1] < '0' || reason.value[i - 1] > '9')
            wb_sha256_update(hash, "#", 1);
    }
}

static void make_group(wb_failed_record *record)
{
    unsigned char digest[WB_SHA256_SIZE];
    wb_sha256 hash;
    wb_sha256_init(&hash);
    wb_sha256_update(&hash, record->type.value, record->type.size);
    wb_sha256_update(&hash, "", 1);
    hash_reason(&hash, record->reason);
    wb_sha256_final(&hash, digest);
    for (size_t i = 0; i < (WB_FAILED_GROUP_SIZE - 1) / 2; i++)
        (void)snprintf(&record->group[2 * i], 3, "%02x", digest[i]);
}

static int is_packed(const void *bytes, size_t size)
{
    return size >= sizeof packed_format && memcmp(bytes, packed_format, sizeof packed_format) == 0;
}

/* One message, and nothing behind it. What was kept before there were packed ones is not asked for that. */
static int read_packed(const unsigned char *bytes, size_t size, wb_operation_group *group, wb_failed_record *record)
{
    wb_reader head = { bytes + sizeof packed_format, bytes + size, 0 };
    wb_operation *operation = &group->operations.first->operation;
    if (group->next || group->operations.count != 1)
        return -1;
    record->packed = (wb_text){ operation->body, operation->body_size };
    operation->body = NULL;
    operation->body_size = wb_reader_u32(&head);
    return operation->body_size && record->packed.size ? 0 : -1;
}

static wb_failed_record make_record(const wb_operation *operation, wb_arena *arena)
{
    wb_failed_record record = { .operation = operation,
                                .id = { operation->id, operation->id_size },
                                .queue = { operation->destination, strlen(operation->destination) },
                                .endpoint = value_of(operation, WB_HEADER_PROCESSING_ENDPOINT),
                                .type = type_of(operation, arena),
                                .kind = value_of(operation, WB_HEADER_EXCEPTION_TYPE),
                                .reason = value_of(operation, WB_HEADER_EXCEPTION_MESSAGE) };
    record.reason.size = cut(record.reason.value, record.reason.size, WB_FAILED_REASON_MAX);
    make_group(&record);
    return record;
}

int wb_failed_decode(const void *bytes, size_t size, wb_arena *arena, wb_failed_record *ret_record)
{
    int failed;
    const size_t head = is_packed(bytes, size) ? PACKED_HEAD : 0;
    if (!head && !wb_operations_are_known(bytes, size))
        return WB_UNREAD_LATER;
    if (size < head)
        return WB_UNREAD_DAMAGED;
    wb_operation_group *group = wb_operations_decode((const unsigned char *)bytes + head, size - head, arena, &failed);
    if (failed || !group || !group->operations.first)
        return WB_UNREAD_DAMAGED;
    *ret_record = make_record(&group->operations.first->operation, arena);
    return head && read_packed(bytes, size, group, ret_record) != 0 ? WB_UNREAD_DAMAGED : 0;
}

/* ---- with its body ------------------------------------------------------------------------ */

static int unpack(wb_failed_record *record, int64_t body_max, wb_arena *arena)
{
    const size_t size = record->operation->body_size;
    if (!wb_failed_may_unpack(record->packed.size, size))
        return WB_UNREAD_BODY;
    if ((int64_t)size > body_max)
        return WB_UNREAD_LARGE;
    wb_operation *operation = wb_arena_alloc(arena, sizeof *operation);
    unsigned char *body = wb_arena_alloc(arena, size + 1);
    *operation = *record->operation;
    operation->body = body;
    body[size] = '\0'; /* as behind every body of a row */
    record->operation = operation;
    if (wb_failed_unpack(record->packed.value, record->packed.size, body, size) != 0)
        return WB_UNREAD_BODY;
    record->packed = (wb_text){ "", 0 };
    return 0;
}

int wb_failed_decode_whole(const void *bytes, size_t size, int64_t body_max, wb_arena *arena, wb_failed_record *ret_record)
{
    const int why = wb_failed_decode(bytes, size, arena, ret_record);
    return !why && ret_record->packed.size ? unpack(ret_record, body_max, arena) : why;
}

const char *wb_failed_fault(int why)
{
    static const char *const faults[] = {
        [WB_UNREAD_LATER] = "this version cannot read the message: a later one kept it",
        [WB_UNREAD_DAMAGED] = "the message is damaged where it is kept: restore its row from a backup, or discard it",
        [WB_UNREAD_BODY] = "the message's body is damaged where it is kept: restore its row from a backup, edit-retry it with "
                                   "another body, or discard it",
        [WB_UNREAD_LARGE] = "the message's body is larger than body_max: set that higher to read it",
    };
    return faults[why];
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/failures/record.h"

#include <stdio.h>
#include <string.h>

#include "core/base/sha256.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"

/* ---- writing ---------------------------------------------------------------------------- */

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
    wb_operations_encode_start(buffer);
    (void)wb_operations_encode_group(buffer, from->id, from->id_size, &list);
    wb_arena_free(&arena);
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

void wb_failed_encode(const wb_message *message, wb_buffer *summary, wb_buffer *whole)
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
    encode(&operation, whole);
    operation.headers = few;
    operation.header_count = summarize(message, few);
    operation.body = "";
    operation.body_size = 0;
    encode(&operation, summary);
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

int wb_failed_decode(const void *bytes, size_t size, wb_arena *arena, wb_failed_record *ret_record)
{
    int failed;
    const wb_operation_group *group = wb_operations_decode(bytes, size, arena, &failed);
    if (failed || !group || !group->operations.first)
        return -1;
    const wb_operation *operation = &group->operations.first->operation;
    *ret_record = (wb_failed_record){ .operation = operation,
                                      .id = { operation->id, operation->id_size },
                                      .queue = { operation->destination, strlen(operation->destination) },
                                      .endpoint = value_of(operation, WB_HEADER_PROCESSING_ENDPOINT),
                                      .type = type_of(operation, arena),
                                      .kind = value_of(operation, WB_HEADER_EXCEPTION_TYPE),
                                      .reason = value_of(operation, WB_HEADER_EXCEPTION_MESSAGE) };
    ret_record->reason.size = cut(ret_record->reason.value, ret_record->reason.size, WB_FAILED_REASON_MAX);
    make_group(ret_record);
    return 0;
}

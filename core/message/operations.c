/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/operations.h"

#include <string.h>

static const char format_1[4] = { 'W', 'B', 'O', '1' };
static const char format_2[4] = { 'W', 'B', 'O', '2' };

/* The least bytes a header can take: two empty strings. Bounds what a damaged count
 * can make us allocate. */
#define ENCODED_HEADER_MIN 10

wb_operation *wb_operation_append(wb_operation_list *list, wb_arena *arena)
{
    wb_operation_node *node = wb_arena_alloc(arena, sizeof *node);
    memset(node, 0, sizeof *node);
    node->operation.struct_size = sizeof node->operation;
    node->operation.result = WB_RETRY; /* until a transport says otherwise */
    if (list->last)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
    list->count++;
    return &node->operation;
}

void wb_operations_encode_start(wb_buffer *buffer)
{
    buffer->size = 0;
    wb_operations_encode_behind(buffer);
}

void wb_operations_encode_behind(wb_buffer *buffer)
{
    wb_buffer_put(buffer, format_1, sizeof format_1);
}

static void encode_operation(wb_buffer *buffer, const wb_operation *operation)
{
    const uint32_t delayed = operation->deliver_at ? WB_ENCODED_DELAYED : 0;
    wb_buffer_put_u32(buffer, (uint32_t)operation->kind);
    wb_buffer_put_u32(buffer, operation->flags | delayed);
    wb_buffer_put_string(buffer, operation->destination, strlen(operation->destination));
    wb_buffer_put_string(buffer, operation->id, operation->id_size);
    wb_buffer_put_string(buffer, operation->key, operation->key_size);
    wb_buffer_put_u32(buffer, (uint32_t)operation->header_count);
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        wb_buffer_put_string(buffer, header->name, header->name_size);
        wb_buffer_put_string(buffer, header->value, header->value_size);
    }
    wb_buffer_put_string(buffer, operation->body, operation->body_size);
    if (!delayed)
        return;
    wb_buffer_put_u64(buffer, (uint64_t)operation->deliver_at);
    memcpy(buffer->data, format_2, sizeof format_2);
}

static size_t count_undone(const wb_operation_list *list)
{
    size_t count = 0;
    for (const wb_operation_node *node = list->first; node; node = node->next)
        count += node->operation.result != WB_OK;
    return count;
}

size_t wb_operations_encode_group(wb_buffer *buffer, const void *cause, size_t cause_size,
                                  const wb_operation_list *list)
{
    size_t count = count_undone(list);
    if (!count)
        return 0;
    wb_buffer_put_string(buffer, cause, cause_size);
    wb_buffer_put_u32(buffer, (uint32_t)count);
    for (const wb_operation_node *node = list->first; node; node = node->next)
        if (node->operation.result != WB_OK)
            encode_operation(buffer, &node->operation);
    return count;
}

static void decode_headers(wb_reader *reader, wb_arena *arena, wb_operation *operation)
{
    size_t count = wb_reader_u32(reader);
    if (count > (size_t)(reader->end - reader->at) / ENCODED_HEADER_MIN) {
        reader->failed = 1;
        return;
    }
    wb_header *headers = wb_arena_alloc(arena, count * sizeof *headers);
    for (size_t i = 0; i < count; i++) {
        headers[i].name = wb_reader_string(reader, &headers[i].name_size);
        headers[i].value = wb_reader_string(reader, &headers[i].value_size);
    }
    operation->headers = headers;
    operation->header_count = count;
}

static void decode_operation(wb_reader *reader, wb_arena *arena, wb_operation *operation)
{
    size_t ignored;
    operation->kind = (int32_t)wb_reader_u32(reader);
    operation->flags = wb_reader_u32(reader);
    operation->destination = wb_reader_string(reader, &ignored);
    operation->id = wb_reader_string(reader, &operation->id_size);
    operation->key = wb_reader_string(reader, &operation->key_size);
    if (!operation->key_size)
        operation->key = NULL;
    decode_headers(reader, arena, operation);
    operation->body = wb_reader_string(reader, &operation->body_size);
    if (operation->flags & WB_ENCODED_DELAYED)
        operation->deliver_at = (int64_t)wb_reader_u64(reader);
    operation->flags &= ~(WB_ENCODED_DELAYED | WB_OPERATION_PARTLY_SENT); /* the latter is an answer, and of no row */
}

static wb_operation_group *decode_group(wb_reader *reader, wb_arena *arena)
{
    wb_operation_group *group = wb_arena_alloc(arena, sizeof *group);
    memset(group, 0, sizeof *group);
    group->cause = wb_reader_string(reader, &group->cause_size);
    size_t count = wb_reader_u32(reader);
    for (size_t i = 0; i < count && !reader->failed; i++)
        decode_operation(reader, arena, wb_operation_append(&group->operations, arena));
    return group;
}

int wb_operations_are_known(const void *data, size_t size)
{
    return size >= sizeof format_1 && (memcmp(data, format_1, sizeof format_1) == 0 ||
                                       memcmp(data, format_2, sizeof format_2) == 0);
}

wb_operation_group *wb_operations_decode(const void *data, size_t size, wb_arena *arena,
                                         int *ret_failed)
{
    wb_reader reader = { data, (const unsigned char *)data + size, 0 };
    wb_operation_group *first = NULL, **next = &first;

    if (!wb_operations_are_known(data, size)) {
        *ret_failed = 1;
        return NULL;
    }
    reader.at += sizeof format_1;
    while (reader.at < reader.end && !reader.failed) {
        *next = decode_group(&reader, arena);
        next = &(*next)->next;
    }
    *ret_failed = reader.failed;
    return reader.failed ? NULL : first;
}

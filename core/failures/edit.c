/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/failures/edit.h"

#include <string.h>

#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/outgoing.h"
#include "core/message/text.h"

static int is_named(const wb_header *header, const char *name)
{
    return header->name_size == strlen(name) && memcmp(header->name, name, header->name_size) == 0;
}

static int is_same_name(const wb_header *one, const wb_header *other)
{
    return one->name_size == other->name_size && memcmp(one->name, other->name, one->name_size) == 0;
}

static int is_among(const wb_header *header, const wb_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_same_name(header, &headers[i]))
            return 1;
    return 0;
}

int wb_failed_is_of_failure(const wb_header *header)
{
    static const char *const starts[] = { WB_HEADER_RETRIES, WB_HEADER_EXCEPTION_PREFIX };
    static const char *const names[] = { WB_HEADER_FAILED_QUEUE, WB_HEADER_TIME_OF_FAILURE, WB_HEADER_FL_RETRIES,
                                         WB_HEADER_RETRY_UNIQUE_ID, WB_HEADER_RETRY_ACKNOWLEDGEMENT_QUEUE,
                                         WB_HEADER_EDIT_OF, WB_HEADER_NOT_KEPT };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (header->name_size >= strlen(starts[i]) && memcmp(header->name, starts[i], strlen(starts[i])) == 0)
            return 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_named(header, names[i]))
            return 1;
    return 0;
}

/* ---- what may be changed ------------------------------------------------------------------ */

static int check_name(const wb_header *header, wb_error *error)
{
    const int size = header->name_size < 100 ? (int)header->name_size : 100;
    if (!header->name_size || header->name_size > WB_OUTGOING_NAME_MAX || !wb_text_is_plain(header->name, header->name_size))
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "a header's name is 1 to %d bytes of text", WB_OUTGOING_NAME_MAX);
    if (wb_failed_is_of_failure(header) || is_named(header, WB_HEADER_MESSAGE_ID))
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0,
                            "header %.*s is not edited: whoever sends the message back sets it, or leaves it out", size,
                            header->name);
    return WB_OK;
}

static int check_value(const wb_header *header, wb_error *error)
{
    if (header->value_size <= WB_OUTGOING_VALUE_MAX && wb_text_is_plain(header->value, header->value_size))
        return WB_OK;
    return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "the value of header %.*s is no text of at most %d bytes",
                        (int)header->name_size, header->name, WB_OUTGOING_VALUE_MAX);
}

int wb_failed_edit_check(const wb_failed_edit *edit, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; i < edit->removed_count && result == WB_OK; i++)
        result = check_name(&edit->removed[i], error);
    for (size_t i = 0; i < edit->header_count && result == WB_OK; i++) {
        result = check_name(&edit->headers[i], error);
        if (result == WB_OK)
            result = check_value(&edit->headers[i], error);
        if (result == WB_OK && is_among(&edit->headers[i], edit->headers, i))
            result = wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "header %.*s is set twice",
                                  (int)edit->headers[i].name_size, edit->headers[i].name);
    }
    return result;
}

/* ---- the change ------------------------------------------------------------------------------ */

static wb_header make_header(const char *name, const char *value, size_t size)
{
    return (wb_header){ .name = name, .value = value, .name_size = strlen(name), .value_size = size };
}

static int stays(const wb_failed_edit *edit, const wb_header *header)
{
    return !is_among(header, edit->headers, edit->header_count) && !is_among(header, edit->removed, edit->removed_count) &&
           !is_named(header, WB_HEADER_MESSAGE_ID);
}

void wb_failed_edit_apply(const wb_failed_edit *edit, const char *key, size_t key_size, wb_operation *operation, wb_arena *arena)
{
    const size_t room = operation->header_count + edit->header_count + 2;
    wb_header *headers = wb_arena_alloc(arena, room * sizeof *headers);
    char *id = wb_arena_alloc(arena, WB_GENERATED_ID_SIZE);
    size_t count = 0;
    wb_id_generate(id);
    headers[count++] = make_header(WB_HEADER_MESSAGE_ID, id, strlen(id));
    for (size_t i = 0; i < operation->header_count; i++)
        if (stays(edit, &operation->headers[i]))
            headers[count++] = operation->headers[i];
    for (size_t i = 0; i < edit->header_count; i++)
        headers[count++] = edit->headers[i];
    headers[count++] = make_header(WB_HEADER_EDIT_OF, key, key_size);
    operation->id = id;
    operation->id_size = strlen(id);
    operation->headers = headers;
    operation->header_count = count;
    operation->body = edit->has_body ? edit->body : operation->body;
    operation->body_size = edit->has_body ? edit->body_size : operation->body_size;
}

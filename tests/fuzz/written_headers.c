/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers as programs write them in SQL, beside a JSON library that knows nothing of ours: what
 * one of the two accepts the other does, but for what is no object of strings.
 */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "core/message/ids.h"
#include "core/written/headers.h"
#include "core/written/message.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "written_headers";

typedef struct {
    wb_header headers[WB_WRITTEN_HEADERS_MAX];
    size_t count;
} parsed;

static int are_strings(const json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
        if (!json_is_string(value))
            return 0;
    return json_is_object(object) && json_object_size(object) <= WB_WRITTEN_HEADERS_MAX;
}

static void check_headers(const parsed *p, const json_t *object)
{
    FUZZ_CHECK(p->count == json_object_size(object));
    for (size_t i = 0; i < p->count; i++) {
        const json_t *value = json_object_get(object, p->headers[i].name);
        FUZZ_CHECK(value && fuzz_is_same(p->headers[i].value, p->headers[i].value_size, json_string_value(value),
                                         json_string_length(value)));
    }
}

static void try_parse(const char *text, size_t size, wb_arena *arena)
{
    parsed *p = fuzz_alloc(sizeof *p);
    json_error_t problem;
    wb_error error = { 0 };
    json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    const int accepted = wb_written_headers_parse(text, size, arena, p->headers, &p->count, &error) == WB_OK;
    FUZZ_CHECK(p->count <= WB_WRITTEN_HEADERS_MAX && (accepted || error.result == WB_REJECT));
    for (size_t i = 0; i < p->count; i++)
        FUZZ_CHECK(p->headers[i].name[p->headers[i].name_size] == '\0' &&
                   p->headers[i].value[p->headers[i].value_size] == '\0');
    if (accepted && object)
        check_headers(p, object);
    else if (accepted) /* our values may be any bytes */
        FUZZ_CHECK(json_error_code(&problem) == json_error_invalid_utf8);
    else
        FUZZ_CHECK(!object || !are_strings(object));
    json_decref(object);
}

/* A row is a message or is refused; what cannot be one can still be kept. */
static void try_row(fuzz_input *input, wb_arena *arena)
{
    const wb_origin endpoint = wb_origin_make("self", 1, 1 << 20), origin = wb_written_origin(&endpoint);
    wb_written row = { .struct_size = sizeof row, .written = (int64_t)(fuzz_large(input) >> 1) };
    wb_written_text *const texts[] = { &row.id, &row.destination, &row.type, &row.key, &row.headers };
    wb_error error = { 0 };
    const unsigned present = fuzz_byte(input);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        texts[i]->data = fuzz_text(input, &texts[i]->size);
        if (!(present >> i & 1))
            *texts[i] = (wb_written_text){ 0 };
    }
    row.body.data = fuzz_rest(input, &row.body.size);
    const wb_operation *operation = wb_written_message(&origin, &row, arena, &error);
    FUZZ_CHECK(operation || error.text[0]);
    FUZZ_CHECK(!operation || (fuzz_is_same(operation->id, operation->id_size, row.id.data, row.id.size) &&
                              operation->destination[0]));
    const wb_written_failed *failed = wb_written_unusable(&row, error.text, arena);
    FUZZ_CHECK(failed->incoming.id_size <= WB_ID_MAX);
}

void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    try_parse(data, size, &arena);
    try_row(&input, &arena);
    wb_arena_free(&arena);
}

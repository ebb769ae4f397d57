/* SPDX-License-Identifier: Apache-2.0
 *
 * What the conformance kit reads of messages that plugins hand out: numbers, marks, and whether a
 * message is what was sent. Whatever it is, the answer is yes or no.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/report.h"
#include "conformance/transport/same.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "kit";

#define HEADERS_MAX 12

typedef struct {
    wb_tk tk;
    wb_plugin plugin;
    wb_kit_case current;
} kit;

/* In place of report.c: what a check says is nobody's. */
void wb_report_send(int reporting, wb_report_kind kind, size_t place, int is_last, const char *text)
{
    (void)reporting, (void)kind, (void)place, (void)is_last, (void)text;
}

static void begin(kit *k, uint64_t capabilities)
{
    k->plugin = (wb_plugin){ .struct_size = sizeof k->plugin, .name = "fuzz", .capabilities = capabilities };
    k->current = (wb_kit_case){ .name = "fuzz" };
    k->tk.kit = (wb_kit){ .plugin = &k->plugin, .current = &k->current, .number = 3 };
    (void)strcpy(k->tk.token, "0123456789abcdef");
    (void)pthread_mutex_init(&k->tk.kit.lock, NULL);
}

static void end(kit *k)
{
    (void)pthread_mutex_destroy(&k->tk.kit.lock);
}

/* ---- a message ------------------------------------------------------------------------------ */

typedef struct {
    wb_operation sent;
    wb_incoming came;
    wb_header headers[HEADERS_MAX], came_headers[HEADERS_MAX];
} letter;

/* A header that was sent has a name, and where none may come twice, one of its own. */
static size_t keep_distinct(wb_header *headers, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        int is_new = headers[i].name[0] != '\0' && strlen(headers[i].name) == headers[i].name_size;
        for (size_t k = 0; k < kept && is_new; k++)
            is_new = strcmp(headers[k].name, headers[i].name) != 0;
        if (is_new)
            headers[kept++] = headers[i];
    }
    return kept;
}

static void make_letter(fuzz_input *input, letter *l)
{
    l->sent = (wb_operation){ .struct_size = sizeof l->sent, .headers = l->headers };
    l->sent.id = fuzz_text(input, &l->sent.id_size);
    l->sent.key = fuzz_text(input, &l->sent.key_size);
    l->sent.header_count = keep_distinct(l->headers, fuzz_headers(input, l->headers, HEADERS_MAX));
    l->sent.body = fuzz_rest(input, &l->sent.body_size);
    for (size_t i = 0; i < l->sent.header_count; i++)
        l->came_headers[i] = (wb_header){ l->headers[i].name, fuzz_copy(l->headers[i].value, l->headers[i].value_size),
                                          l->headers[i].name_size, l->headers[i].value_size };
    l->came = (wb_incoming){ .struct_size = sizeof l->came, .id = l->sent.id_size ? l->sent.id : NULL,
                             .id_size = l->sent.id_size, .headers = l->came_headers,
                             .header_count = l->sent.header_count, .body = l->sent.body,
                             .body_size = l->sent.body_size, .key = l->sent.key, .key_size = l->sent.key_size };
}

static int is_same(kit *k, const letter *l)
{
    k->tk.kit.is_failed = 0;
    wb_tk_expect_same(&k->tk.kit, &l->came, &l->sent);
    return !k->tk.kit.is_failed;
}

/* One byte of it is another. @return 0: there is none that could be. */
static int change(letter *l, unsigned which)
{
    wb_header *header = l->sent.header_count ? &l->came_headers[which % l->sent.header_count] : NULL;
    if (!header || !header->value_size || wb_tk_stands_for_a_property(header, &l->sent) ||
        strcmp(header->name, "NServiceBus.MessageId") == 0) /* it could become the id */
        return 0;
    char *value = fuzz_copy(header->value, header->value_size);
    value[which % header->value_size] ^= 0x15;
    header->value = value;
    return 1;
}

static void try_letter(const void *data, size_t size, uint64_t capabilities)
{
    fuzz_input input = fuzz_begin(data, size);
    const unsigned which = fuzz_number(&input);
    letter *l = fuzz_alloc(sizeof *l);
    kit k = { 0 };
    begin(&k, capabilities);
    make_letter(&input, l);
    FUZZ_CHECK(is_same(&k, l));
    FUZZ_CHECK(!change(l, which) || !is_same(&k, l));
    (void)wb_tk_is_ours(&k.tk, &l->came);
    (void)wb_tk_number(&l->came);
    end(&k);
}

/* The number it gave a message is the one it reads. */
static void try_number(size_t number)
{
    kit k = { 0 };
    wb_tk_letter written;
    begin(&k, 0);
    wb_tk_write(&k.tk.kit, &written, "queue", "key", number);
    const wb_incoming came = { .struct_size = sizeof came, .id = written.id, .id_size = strlen(written.id) };
    FUZZ_CHECK(wb_tk_is_ours(&k.tk, &came) && wb_tk_number(&came) == number);
    end(&k);
}

void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    try_letter(data, size, 0);
    try_letter(data, size, WB_CAP_HEADER_ORDER);
    try_number(fuzz_number(&input));
}

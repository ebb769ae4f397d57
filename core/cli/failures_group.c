/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages by type and reason: how many there are of each.
 */
#include "config.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/memory.h"
#include "core/cli/describe.h"
#include "core/cli/failures.h"
#include "core/cli/waiting.h"

typedef struct group {
    char id[WB_FAILED_GROUP_SIZE];
    uint64_t count;
    int64_t first, last; /* when they failed */
    wb_text type, kind, reason;
} group;

typedef struct groups {
    cli_failures *f; /* groups live in its arena */
    void *by_id;     /* tsearch's */
    group **all;
    size_t count, capacity;
} groups;

static int compare_ids(const void *left, const void *right)
{
    const group *a = left, *b = right;
    return strcmp(a->id, b->id);
}

static wb_text keep_text(groups *g, wb_text text)
{
    return (wb_text){ wb_arena_copy(&g->f->arena, text.value, text.size), text.size };
}

static group *add_group(groups *g, const wb_failed_record *record)
{
    if (g->count == g->capacity) {
        g->capacity = g->capacity ? 2 * g->capacity : 64;
        g->all = wb_realloc(g->all, g->capacity * sizeof *g->all);
    }
    group *made = wb_arena_alloc(&g->f->arena, sizeof *made);
    *made = (group){ .type = keep_text(g, record->type), .kind = keep_text(g, record->kind), .reason = keep_text(g, record->reason) };
    memcpy(made->id, record->group, sizeof made->id);
    return g->all[g->count++] = made;
}

static group *find_group(groups *g, const wb_failed_record *record)
{
    group wanted;
    memcpy(wanted.id, record->group, sizeof wanted.id);
    group *const *found = tfind(&wanted, &g->by_id, compare_ids);
    if (found)
        return *found;
    group *made = add_group(g, record);
    if (!tsearch(made, &g->by_id, compare_ids))
        wb_memory_is_out();
    return made;
}

/* They come in the order in which they failed. */
static void count_one(void *argument, const wb_failed *failed, const wb_failed_record *record)
{
    group *one = find_group(argument, record);
    if (!one->count++)
        one->first = failed->failed_at;
    one->last = failed->failed_at;
}

static int compare_counts(const void *left, const void *right)
{
    const group *a = *(group *const *)left, *b = *(group *const *)right;
    return a->count != b->count ? (a->count < b->count) - (a->count > b->count) : strcmp(a->id, b->id);
}

static void print_group(const group *g)
{
    char last[WB_LOG_TIMESTAMP_SIZE];
    wb_clock_format_log(g->last, last);
    (void)printf("%-12s  %8" PRIu64 "  %-24s  ", g->id, g->count, last);
    cli_waiting_print_bytes(g->type.size ? g->type.value : "-", g->type.size ? g->type.size : 1);
    (void)printf("  ");
    cli_waiting_print_bytes(g->reason.value, g->reason.size);
    (void)putchar('\n');
}

static json_t *group_json(const group *g)
{
    json_t *object = json_object();
    json_object_set_new(object, "group", json_string(g->id));
    json_object_set_new(object, "count", json_integer((json_int_t)g->count));
    json_object_set_new(object, "first", cli_waiting_time_json(g->first));
    json_object_set_new(object, "last", cli_waiting_time_json(g->last));
    cli_waiting_set_bytes(object, "type", "type_hex", g->type.value, g->type.size);
    cli_waiting_set_bytes(object, "kind", "kind_hex", g->kind.value, g->kind.size);
    cli_waiting_set_bytes(object, "reason", "reason_hex", g->reason.value, g->reason.size);
    return object;
}

static void print_all(const groups *g)
{
    if (!g->f->is_json)
        (void)printf("%-12s  %8s  %-24s  TYPE  REASON\n", "GROUP", "MESSAGES", "LAST (UTC)");
    for (size_t i = 0; i < g->count; i++) {
        if (g->f->is_json)
            cli_print_element(g->f->shown++, group_json(g->all[i]));
        else
            print_group(g->all[i]);
    }
}

int cli_failures_group(cli_failures *f)
{
    groups g = { .f = f };
    const int code = cli_failures_visit(f, count_one, &g);
    if (g.count)
        qsort(g.all, g.count, sizeof *g.all, compare_counts);
    if (code == EX_OK)
        print_all(&g);
    for (size_t i = 0; i < g.count; i++)
        (void)tdelete(g.all[i], &g.by_id, compare_ids);
    free(g.all);
    return code;
}

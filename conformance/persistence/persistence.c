/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: its cases in order.
 */
#include "config.h"

#include "conformance/persistence/persistence.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"

static const wb_kit_group *const groups[] = {
    &wb_cases_descriptor, &wb_cases_schema, &wb_cases_transactions, &wb_cases_claims,
    &wb_cases_ids,        &wb_cases_operations, &wb_cases_marks,    &wb_cases_sweep,
    &wb_cases_walk,       &wb_cases_parked,     &wb_cases_clean_up, &wb_cases_clock,
    &wb_cases_fault,      &wb_cases_threads,    &wb_cases_specs,    &wb_cases_victim,
    &wb_cases_again,      &wb_cases_between,    &wb_cases_business,   &wb_cases_inside,
    &wb_cases_lost,       &wb_cases_process,    &wb_cases_delayed,  &wb_cases_delayed_lease,
    &wb_cases_delayed_list, &wb_cases_delayed_model, &wb_cases_delayed_pairs,
    &wb_cases_delayed_between, &wb_cases_delayed_lost, &wb_cases_delayed_commit, &wb_cases_late,
    &wb_cases_look,       &wb_cases_take,       &wb_cases_written,    &wb_cases_failed,
    &wb_cases_positions,
    &wb_cases_forget,
    &wb_cases_remember,   &wb_cases_removal,
};

#define GROUPS (sizeof groups / sizeof *groups)

static wb_kit_case *collect(size_t *ret_count)
{
    wb_kit_case *all = NULL;
    size_t count = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        all = wb_realloc(all, (count + groups[i]->count) * sizeof *all);
        memcpy(all + count, groups[i]->cases, groups[i]->count * sizeof *all);
        count += groups[i]->count;
    }
    *ret_count = count;
    return all;
}

static int open_book(wb_kit *kit, wb_error *error)
{
    (void)error;
    ((wb_stores_kit *)kit)->is_behind_failure = kit->number > 1;
    wb_nursery_begin((wb_stores_kit *)kit);
    wb_process_note(&((wb_stores_kit *)kit)->process);
    wb_wires_remember(&((wb_stores_kit *)kit)->wires);
    return WB_OK;
}

static void close_book(wb_kit *kit)
{
    wb_stores_close((wb_stores_kit *)kit);
    wb_nursery_end((wb_stores_kit *)kit);
}

size_t wb_persistence_kit(const wb_endpoint_setup *endpoint, const wb_kit_options *options, FILE *out)
{
    wb_kit_book book = { .open = open_book, .close = close_book };
    wb_kit_case *all = collect(&book.count);
    wb_stores_kit kit = {
        .kit = { .endpoint = endpoint, .plugin = endpoint->persistence, .options = options, .out = out },
    };
    book.cases = all;
    size_t failed = wb_kit_run(&kit.kit, &book);
    free(all);
    return failed;
}

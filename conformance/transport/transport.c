/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport kit: its cases in order. Those that share sessions stand together.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/transport/steps.h"
#include "core/base/arena.h"
#include "core/base/log.h"

static const struct {
    const wb_kit_case *cases;
    const size_t *count;
} topics[] = {
    { wb_tk_descriptor_cases, &wb_tk_descriptor_count },
    { wb_tk_life_cases, &wb_tk_life_count },
    { wb_tk_content_cases, &wb_tk_content_count },
    { wb_tk_limits_cases, &wb_tk_limits_count },
    { wb_tk_send_cases, &wb_tk_send_count },
    { wb_tk_harm_cases, &wb_tk_harm_count },
    { wb_tk_receive_cases, &wb_tk_receive_count },
    { wb_tk_prefetch_cases, &wb_tk_prefetch_count },
    { wb_tk_memory_cases, &wb_tk_memory_count },
    { wb_tk_stop_cases, &wb_tk_stop_count },
    { wb_tk_acknowledge_cases, &wb_tk_acknowledge_count },
    { wb_tk_held_cases, &wb_tk_held_count },
    { wb_tk_loss_cases, &wb_tk_loss_count },
    { wb_tk_replies_cases, &wb_tk_replies_count },
    { wb_tk_delay_cases, &wb_tk_delay_count },
    { wb_tk_expiry_cases, &wb_tk_expiry_count },
    { wb_tk_order_cases, &wb_tk_order_count },
    { wb_tk_transaction_cases, &wb_tk_transaction_count },
    { wb_tk_rerun_cases, &wb_tk_rerun_count },
    { wb_tk_queues_cases, &wb_tk_queues_count },
    { wb_tk_removal_cases, &wb_tk_removal_count },
};
#define TOPICS (sizeof topics / sizeof *topics)

static wb_kit_case *collect(size_t *ret_count)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < TOPICS; i++)
        count += *topics[i].count;
    wb_kit_case *all = wb_alloc(count * sizeof *all);
    for (size_t i = 0; i < TOPICS; at += *topics[i++].count)
        memcpy(all + at, topics[i].cases, *topics[i].count * sizeof *all);
    *ret_count = count;
    return all;
}

static int open_book(wb_kit *kit, wb_error *error)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_error reason = { 0 };
    wb_log_set_level(WB_LOG_ERROR); /* connections that break are part of it */
    wb_tk_victims_spawn(tk);
    wb_wires_remember(&tk->wires);
    int result = wb_tk_install(tk, &reason);
    if (result != WB_OK)
        (void)wb_error_set(error, result, reason.cause, reason.native_code, "could not install \"%s\": %s",
                           tk->queues[WB_TK_MAIN], reason.text);
    return result;
}

static void close_book(wb_kit *kit)
{
    wb_tk_end(wb_tk_of(kit));
    wb_tk_victims_end(wb_tk_of(kit));
}

size_t wb_transport_kit(const wb_endpoint_setup *endpoint, const wb_kit_options *options, FILE *out)
{
    wb_tk tk;
    wb_kit_book book = { .open = open_book, .close = close_book };
    wb_kit_case *all = collect(&book.count);
    book.cases = all;
    wb_tk_init(&tk, endpoint, options, out);
    size_t failed = wb_kit_run(&tk.kit, &book);
    free(all);
    return failed;
}

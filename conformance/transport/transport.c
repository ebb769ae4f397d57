/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport kit: its cases in order. Those that share sessions stand together.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "conformance/transport/steps.h"

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
    { wb_tk_delay_cases, &wb_tk_delay_count },
    { wb_tk_expiry_cases, &wb_tk_expiry_count },
    { wb_tk_order_cases, &wb_tk_order_count },
    { wb_tk_transaction_cases, &wb_tk_transaction_count },
    { wb_tk_rerun_cases, &wb_tk_rerun_count },
};
#define TOPICS (sizeof topics / sizeof *topics)

static size_t run_all(wb_tk *tk)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < TOPICS; i++)
        count += *topics[i].count;
    wb_kit_case *all = wb_alloc(count * sizeof *all);
    for (size_t i = 0; i < TOPICS; at += *topics[i++].count)
        memcpy(all + at, topics[i].cases, *topics[i].count * sizeof *all);
    size_t failed = wb_kit_run(&tk->kit, all, count);
    free(all);
    return failed;
}

/* Without queues every case would say the same. */
static size_t bail_out(const wb_tk *tk, const wb_error *error)
{
    (void)fprintf(tk->kit.out, "Bail out! could not install \"%s\": %s\n", tk->queues[WB_TK_MAIN],
                  error->text);
    return 1;
}

size_t wb_transport_kit(const wb_endpoint_setup *endpoint, const wb_kit_options *options, FILE *out)
{
    wb_tk tk;
    wb_error error = { 0 };
    wb_tk_init(&tk, endpoint, options, out);
    wb_log_set_level(WB_LOG_ERROR); /* connections that break are part of it */
    wb_tk_victims_spawn(&tk);
    size_t failed = wb_tk_install(&tk, &error) == WB_OK ? run_all(&tk) : bail_out(&tk, &error);
    wb_tk_end(&tk);
    wb_tk_victims_end(&tk);
    return failed;
}

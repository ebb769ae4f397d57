/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/watch.h"

#include <stdlib.h>
#include <sysexits.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "core/base/printable.h"
#include "core/cli/cli.h"
#include "core/cli/pulse.h"

static void see(const cli_watch *watch, const cli_hosted *one, size_t number, int is_stopping, wb_vitals *vitals)
{
    const char *reason = NULL;
    wb_health_facts facts;
    *vitals = (wb_vitals){ 0 };
    if (one->endpoint)
        wb_vitals_take(one->endpoint, vitals);
    vitals->state = cli_pulse_judge(one, is_stopping, &facts, &reason);
    vitals->has_depth = cli_depths_of(watch->depths, number, &vitals->queue_messages);
    (void)wb_utf8_copy(reason ? reason : "", vitals->reason, sizeof vitals->reason);
}

static void describe(const cli_watch *watch, const cli_hosted *one, size_t number, wb_observed *observed)
{
    const wb_endpoint_setup *setup = one->setup;
    *observed = (wb_observed){ .endpoint = setup->config->name,
                               .transport = setup->transport->name,
                               .persistence = setup->persistence ? setup->persistence->name : NULL,
                               .mode = wb_mode_name(setup->plan.mode),
                               .outbox = setup->plan.outbox,
                               .send_only = setup->plan.send_only };
    see(watch, one, number, 0, &observed->vitals);
}

static int make_console(cli_watch *watch, const wb_config *config, const cli_hosted *hosted, size_t count)
{
    if (!config->console.at.is_set)
        return EX_OK;
    watch->console = cli_console_make(&config->console, hosted, count);
    return watch->console ? EX_OK : cli_fail(EX_SOFTWARE, "could not start a thread for the console");
}

static int listen_at(cli_watch *watch, const wb_http_config *http)
{
    wb_error error = { 0 };
    wb_console *console = watch->console ? &watch->console->console : NULL;
    if (wb_listener_start(http, &watch->board, console, &watch->listener, &error) == WB_OK)
        return EX_OK;
    if (console)
        wb_desk_close(console->desk);
    return cli_fail(error.cause == WB_CAUSE_CONFIG ? EX_CONFIG : EX_UNAVAILABLE, "%s", error.text);
}

int cli_watch_begin(cli_watch *watch, const wb_config *config, const cli_hosted *hosted, size_t count)
{
    if (!config->http.listen)
        return EX_OK;
    wb_observed *observed = wb_alloc((count + 1) * sizeof *observed);
    for (size_t i = 0; i < count; i++)
        describe(watch, &hosted[i], i, &observed[i]);
    wb_board_init(&watch->board, observed, count);
    free(observed);
    int code = make_console(watch, config, hosted, count);
    if (code == EX_OK)
        code = listen_at(watch, &config->http);
    if (code != EX_OK) {
        (void)cli_console_free(watch->console);
        watch->console = NULL;
        wb_board_free(&watch->board);
        return code;
    }
    watch->depths = cli_depths_begin(hosted, count);
    wb_log_event(WB_LOG_INFO, "answers by http", { "listen", config->http.listen },
                 { "tls", config->http.key ? "yes" : "no" },
                 { "console", !watch->console ? NULL : config->console.write ? "write" : "read" });
    return EX_OK;
}

static void note(cli_watch *watch, int64_t now)
{
    wb_overview overview;
    wb_board_read(&watch->board, &overview);
    wb_history_look(watch->console->console.history, &overview, now);
    free((void *)(uintptr_t)overview.endpoints);
}

void cli_watch_look(cli_watch *watch, const cli_hosted *hosted, size_t count, int is_stopping, int64_t now)
{
    wb_vitals vitals;
    if (!watch->listener)
        return;
    for (size_t i = 0; i < count; i++) {
        see(watch, &hosted[i], i, is_stopping, &vitals);
        wb_board_put(&watch->board, i, &vitals);
    }
    if (watch->console)
        note(watch, now);
}

int cli_watch_end(cli_watch *watch)
{
    if (!watch->listener)
        return 1;
    wb_listener_stop(watch->listener);
    watch->listener = NULL;
    const int has_ended = cli_depths_end(watch->depths);
    watch->depths = NULL;
    if (!cli_console_free(watch->console) || !has_ended)
        return 0;
    watch->console = NULL;
    wb_board_free(&watch->board);
    return 1;
}

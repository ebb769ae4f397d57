/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/pulse.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/printable.h"

void cli_pulse_begin(cli_pulse *pulse)
{
    memset(pulse, 0, sizeof *pulse);
    cli_notify_open(&pulse->notify);
}

void cli_pulse_end(cli_pulse *pulse)
{
    cli_notify_close(&pulse->notify);
}

void cli_pulse_ready(cli_pulse *pulse)
{
    cli_notify_send(&pulse->notify, "READY=1");
}

/* ---- status ----------------------------------------------------------------------------- */

int cli_pulse_judge(const cli_hosted *one, int is_stopping, wb_health_facts *facts, const char **ret_reason)
{
    *facts = (wb_health_facts){ 0 };
    if (one->endpoint)
        wb_endpoint_facts(one->endpoint, facts);
    facts->is_starting = !one->endpoint;
    facts->gave_up = one->failure.result != WB_OK;
    facts->is_stopping = is_stopping;
    int state = wb_health_judge(facts, ret_reason);
    if (state == WB_HEALTH_STARTING && one->wait.tries)
        *ret_reason = one->wait.error.text;
    return state;
}

/* Cut where it is longer than there is room for. */
static void append(char *text, size_t size, const char *name, int state, const char *reason)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s %s %s%s%.150s%s", strchr(text, ' ') ? "," : "", name,
                   wb_health_name(state), reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
}

static void tell_status(cli_pulse *pulse, const char *status, int is_stopping)
{
    char text[700];
    const char *stopping = is_stopping && !pulse->is_stopping ? "STOPPING=1\n" : "";
    if (*stopping == '\0' && strcmp(status, pulse->status) == 0)
        return;
    (void)snprintf(pulse->status, sizeof pulse->status, "%s", status);
    pulse->is_stopping = is_stopping;
    (void)snprintf(text, sizeof text, "%sSTATUS=%s", stopping, status);
    cli_notify_send(&pulse->notify, text);
}

/* ---- watchdog --------------------------------------------------------------------------- */

static void feed(cli_pulse *pulse, int64_t now)
{
    if (!pulse->notify.watchdog || (pulse->fed && now - pulse->fed < pulse->notify.watchdog / 2))
        return;
    pulse->fed = now;
    cli_notify_send(&pulse->notify, "WATCHDOG=1");
}

void cli_pulse_look(cli_pulse *pulse, const cli_hosted *hosted, size_t count, int is_stopping, int64_t now)
{
    char each[sizeof pulse->status - 16] = "", text[sizeof pulse->status], status[sizeof pulse->status];
    wb_health_facts facts;
    unsigned stuck = 0;
    int worst = WB_HEALTH_RUNNING;
    if (pulse->notify.socket < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        const char *reason = NULL;
        int state = cli_pulse_judge(&hosted[i], is_stopping, &facts, &reason);
        append(each, sizeof each, hosted[i].setup->config->name, state, reason);
        worst = state > worst ? state : worst;
        stuck += facts.stuck;
    }
    (void)snprintf(text, sizeof text, "%s:%s", wb_health_name(worst), each);
    /* reasons come from libraries: a line of theirs must not be an assignment of ours */
    (void)wb_printable_copy(text, strlen(text), status, sizeof status);
    tell_status(pulse, status, is_stopping);
    if (!stuck)
        feed(pulse, now);
}

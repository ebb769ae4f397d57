/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/failed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/cli/waiting.h"

#define ROW "%-24s  %-8s  %8s  %-12s  %-36s  "

static const char *const statuses[] = { "any", "failed", "retrying", "resolved", "archived" };
#define STATUSES ((int32_t)(sizeof statuses / sizeof *statuses))

int32_t cli_failed_status(const char *name)
{
    for (int32_t i = 0; i < STATUSES; i++)
        if (strcmp(statuses[i], name) == 0)
            return i;
    return -1;
}

const char *cli_failed_status_name(int32_t status)
{
    return status > 0 && status < STATUSES ? statuses[status] : "unknown";
}

int cli_failed_unread(const char *key, size_t key_size, int why)
{
    return cli_fail(EX_DATAERR, "failure %.*s: %s", (int)key_size, key, wb_failed_fault(why));
}

static int is_equal(const char *wanted, const char *value, size_t size)
{
    return !wanted || (strlen(wanted) == size && memcmp(wanted, value, size) == 0);
}

static int is_text(const char *wanted, wb_text text)
{
    return is_equal(wanted, text.value, text.size);
}

static int holds(const char *wanted, wb_text text)
{
    return !wanted || memmem(text.value, text.size, wanted, strlen(wanted)) != NULL;
}

int cli_failed_matches(const cli_failed_filter *f, const wb_failed *failed, const wb_failed_record *record)
{
    return is_equal(f->key, failed->key, failed->key_size) && is_text(f->id, record->id) &&
           is_text(f->type, record->type) && is_text(f->endpoint, record->endpoint) && is_text(f->queue, record->queue) &&
           holds(f->reason, record->reason) && is_equal(f->group, record->group, strlen(record->group));
}

/* ---- rows ------------------------------------------------------------------------------- */

static void print_text(wb_text text)
{
    cli_waiting_print_bytes(text.value, text.size);
}

void cli_failed_print_heading(void)
{
    (void)printf(ROW "TYPE  REASON\n", "FAILED (UTC)", "STATUS", "ATTEMPTS", "GROUP", "FAILURE");
}

void cli_failed_print_row(const wb_failed *failed, const wb_failed_record *record)
{
    char time[WB_LOG_TIMESTAMP_SIZE], attempts[12], key[WB_FAILED_KEY_MAX + 1];
    wb_clock_format_log(failed->failed_at, time);
    (void)snprintf(attempts, sizeof attempts, "%" PRIu32, failed->attempts);
    (void)snprintf(key, sizeof key, "%.*s", (int)failed->key_size, failed->key);
    (void)printf(ROW, time, cli_failed_status_name(failed->status), attempts, record->group, key);
    print_text(record->type.size ? record->type : (wb_text){ "-", 1 });
    (void)printf("  ");
    print_text(record->reason);
    (void)putchar('\n');
}

static void set_text(json_t *object, const char *name, const char *name_hex, wb_text text)
{
    cli_waiting_set_bytes(object, name, name_hex, text.value, text.size);
}

json_t *cli_failed_json(const wb_failed *failed, const wb_failed_record *record)
{
    json_t *object = json_object();
    set_text(object, "failure", "failure_hex", (wb_text){ failed->key, failed->key_size });
    json_object_set_new(object, "status", json_string(cli_failed_status_name(failed->status)));
    json_object_set_new(object, "attempts", json_integer(failed->attempts));
    json_object_set_new(object, "failed_at", cli_waiting_time_json(failed->failed_at));
    json_object_set_new(object, "changed_at", cli_waiting_time_json(failed->changed_at));
    json_object_set_new(object, "group", json_string(record->group));
    set_text(object, "id", "id_hex", record->id);
    set_text(object, "queue", "queue_hex", record->queue);
    set_text(object, "endpoint", "endpoint_hex", record->endpoint);
    set_text(object, "type", "type_hex", record->type);
    set_text(object, "kind", "kind_hex", record->kind);
    set_text(object, "reason", "reason_hex", record->reason);
    return object;
}

/* ---- one message, whole ------------------------------------------------------------------- */

static void print_line(const char *name, wb_text text)
{
    (void)printf("%-12s ", name);
    print_text(text);
    (void)putchar('\n');
}

void cli_failed_print(const wb_failed *failed, const wb_failed_record *record)
{
    char time[WB_LOG_TIMESTAMP_SIZE], changed[WB_LOG_TIMESTAMP_SIZE];
    wb_clock_format_log(failed->failed_at, time);
    wb_clock_format_log(failed->changed_at, changed);
    print_line("failure", (wb_text){ failed->key, failed->key_size });
    (void)printf("%-12s %s since %s\n", "status", cli_failed_status_name(failed->status), changed);
    (void)printf("%-12s %s, %" PRIu32 "%s\n", "failed", time, failed->attempts, failed->attempts == 1 ? " attempt" : " attempts");
    print_line("group", (wb_text){ record->group, strlen(record->group) });
    print_line("id", record->id);
    print_line("type", record->type);
    print_line("endpoint", record->endpoint);
    print_line("queue", record->queue);
    print_line("kind", record->kind);
    print_line("reason", record->reason);
    (void)printf("%-12s %zu bytes\nheaders\n", "body", record->operation->body_size);
    cli_waiting_print_headers(record->operation);
}

json_t *cli_failed_whole_json(const wb_failed *failed, const wb_failed_record *record)
{
    json_t *object = cli_failed_json(failed, record);
    json_object_set_new(object, "body_size", json_integer((json_int_t)record->operation->body_size));
    json_object_set_new(object, "headers", cli_waiting_headers_json(record->operation));
    return object;
}

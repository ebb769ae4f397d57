/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/printable.h"
#include "core/cli/cli.h"
#include "core/cli/when.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/message/operations.h"
#include "core/message/text.h"

#define ROW "%-24s  %10s  %-24s  %7s  %8s  "

/* ---- values -------------------------------------------------------------------------- */

void cli_waiting_print_bytes(const char *bytes, size_t size)
{
    char piece[WB_PRINTABLE_SIZE];
    size_t step;
    if (wb_printable_is(bytes, size)) {
        (void)fwrite(bytes, 1, size, stdout);
        return;
    }
    for (; (step = wb_printable_next(bytes, size, piece)) != 0; bytes += step, size -= step)
        (void)fputs(*bytes == '\\' ? "\\x5c" : piece, stdout);
}

/* How far away: "in 5 min", "3 h ago". */
static const char *format_distance(int64_t due, int64_t now, char text[2 * CLI_SPAN_SIZE])
{
    char span[CLI_SPAN_SIZE];
    (void)snprintf(text, 2 * CLI_SPAN_SIZE, due > now ? "in %s" : "%s ago",
                   cli_format_span(due > now ? due - now : now - due, span));
    return text;
}

static const char *describe_lease(const wb_delayed *message, char text[WB_LOG_TIMESTAMP_SIZE])
{
    if (!message->leased_until)
        return "";
    if (message->leased_until < WB_SECOND) /* a store may not know when that was */
        return "earlier";
    wb_clock_format_log(message->leased_until, text);
    return text;
}

/* ---- rows ---------------------------------------------------------------------------- */

void cli_waiting_print_heading(void)
{
    (void)printf(ROW "DESTINATION  ID\n", "DUE (UTC)", "", "TAKEN UNTIL", "RETRIES", "FAILURES");
}

void cli_waiting_print_row(const wb_delayed *message, int64_t now)
{
    char due[WB_LOG_TIMESTAMP_SIZE], taken[WB_LOG_TIMESTAMP_SIZE], distance[2 * CLI_SPAN_SIZE], retries[12], failures[12];
    wb_clock_format_log(message->due, due);
    (void)snprintf(retries, sizeof retries, "%" PRIu32, message->retries);
    (void)snprintf(failures, sizeof failures, "%" PRIu32, message->failures);
    (void)printf(ROW, due, format_distance(message->due, now, distance), describe_lease(message, taken), retries,
                 failures);
    cli_waiting_print_bytes(message->destination, message->destination_size);
    (void)printf("  ");
    cli_waiting_print_bytes(message->id, message->id_size);
    (void)putchar('\n');
}

void cli_waiting_set_bytes(json_t *object, const char *name, const char *name_hex, const char *bytes, size_t size)
{
    if (wb_text_is_plain(bytes, size)) {
        json_object_set_new(object, name, json_stringn(bytes, size));
        return;
    }
    char *hex = wb_alloc(2 * size + 1);
    for (size_t i = 0; i < size; i++)
        (void)snprintf(&hex[2 * i], 3, "%02x", (unsigned char)bytes[i]);
    json_object_set_new(object, name_hex, json_stringn(hex, 2 * size));
    free(hex);
}

json_t *cli_waiting_time_json(int64_t time)
{
    char text[WB_LOG_TIMESTAMP_SIZE];
    wb_clock_format_log(time, text);
    return json_string(text);
}

json_t *cli_waiting_json(const wb_delayed *message)
{
    json_t *object = json_object();
    cli_waiting_set_bytes(object, "id", "id_hex", message->id, message->id_size);
    cli_waiting_set_bytes(object, "destination", "destination_hex", message->destination, message->destination_size);
    json_object_set_new(object, "due", cli_waiting_time_json(message->due));
    json_object_set_new(object, "retries", json_integer(message->retries));
    json_object_set_new(object, "failures", json_integer(message->failures));
    json_object_set_new(object, "taken_until",
                        message->leased_until ? cli_waiting_time_json(message->leased_until) : json_null());
    return object;
}

/* ---- one message, whole ---------------------------------------------------------------- */

/* @return NULL: a later version wrote it. */
static const wb_operation *decode(const wb_delayed *message, wb_arena *arena)
{
    int failed;
    wb_operation_group *group = wb_operations_decode(message->operation, message->operation_size, arena, &failed);
    return failed || !group || !group->operations.first ? NULL : &group->operations.first->operation;
}

static const char *kind_of(const wb_operation *operation)
{
    return operation->kind == WB_OPERATION_PUBLISH ? "publish" : "send";
}

static void print_operation(const wb_delayed *message, const wb_operation *operation)
{
    if (!operation) {
        (void)printf("format       \"");
        cli_waiting_print_bytes(message->operation, message->operation_size < 4 ? message->operation_size : 4);
        (void)printf("\", which this version cannot read\n");
        return;
    }
    (void)printf("kind         %s\nbody         %zu bytes\nheaders\n", kind_of(operation), operation->body_size);
    cli_waiting_print_headers(operation);
}

void cli_waiting_print_headers(const wb_operation *operation)
{
    for (size_t i = 0; i < operation->header_count; i++) {
        (void)printf("  ");
        cli_waiting_print_bytes(operation->headers[i].name, operation->headers[i].name_size);
        (void)printf(" = ");
        cli_waiting_print_bytes(operation->headers[i].value, operation->headers[i].value_size);
        (void)putchar('\n');
    }
}

void cli_waiting_print(const wb_delayed *message, int64_t now)
{
    char due[WB_LOG_TIMESTAMP_SIZE], taken[WB_LOG_TIMESTAMP_SIZE], distance[2 * CLI_SPAN_SIZE];
    wb_arena arena;
    wb_clock_format_log(message->due, due);
    (void)printf("id           ");
    cli_waiting_print_bytes(message->id, message->id_size);
    (void)printf("\ndestination  ");
    cli_waiting_print_bytes(message->destination, message->destination_size);
    (void)printf("\ndue          %s (%s)\nretries      %" PRIu32 "\nfailures     %" PRIu32 "\n", due,
                 format_distance(message->due, now, distance), message->retries, message->failures);
    if (message->leased_until)
        (void)printf("taken until  %s\n", describe_lease(message, taken));
    wb_arena_init(&arena, 4096);
    print_operation(message, decode(message, &arena));
    wb_arena_free(&arena);
}

/* Of several headers of one name the last is shown. */
json_t *cli_waiting_headers_json(const wb_operation *operation)
{
    json_t *object = json_object();
    for (size_t i = 0; i < operation->header_count; i++)
        if (wb_text_is_plain(operation->headers[i].name, operation->headers[i].name_size))
            cli_waiting_set_bytes(object, operation->headers[i].name, operation->headers[i].name, operation->headers[i].value,
                      operation->headers[i].value_size);
    return object;
}

json_t *cli_waiting_whole_json(const wb_delayed *message)
{
    wb_arena arena;
    json_t *object = cli_waiting_json(message);
    wb_arena_init(&arena, 4096);
    const wb_operation *operation = decode(message, &arena);
    json_object_set_new(object, "is_readable", json_boolean(operation != NULL));
    if (operation) {
        json_object_set_new(object, "kind", json_string(kind_of(operation)));
        json_object_set_new(object, "body_size", json_integer((json_int_t)operation->body_size));
        json_object_set_new(object, "headers", cli_waiting_headers_json(operation));
    }
    wb_arena_free(&arena);
    return object;
}

/* A terminal gets nothing that it would obey but line breaks and tabs. */
void cli_waiting_print_content(const char *body, size_t size)
{
    char piece[WB_PRINTABLE_SIZE];
    size_t step;
    if (!isatty(STDOUT_FILENO)) {
        (void)fwrite(body, 1, size, stdout);
        return;
    }
    for (; (step = wb_printable_next(body, size, piece)) != 0; body += step, size -= step)
        if (*body == '\n' || *body == '\t')
            (void)putchar(*body);
        else
            (void)fputs(piece, stdout);
}

int cli_waiting_print_body(const wb_delayed *message)
{
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const wb_operation *operation = decode(message, &arena);
    if (operation)
        cli_waiting_print_content(operation->body, operation->body_size);
    wb_arena_free(&arena);
    return operation ? EX_OK : cli_fail(EX_DATAERR, "this version cannot read the message");
}

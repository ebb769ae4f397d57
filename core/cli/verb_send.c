/* SPDX-License-Identifier: Apache-2.0
 *
 * send and publish: messages from the command line or a file, through the transport of an
 * endpoint, confirmed by the broker.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/cli/cli.h"
#include "core/cli/content.h"
#include "core/cli/json_line.h"
#include "core/cli/when.h"
#include "core/config/units.h"
#include "core/endpoint/endpoint.h"

/* Messages of a file that are sent and confirmed together. */
#define WINDOW 500
#define TIMEOUT (60 * WB_SECOND)

#define OPTION_DELAY CLI_LONG_OPTION(1)
#define OPTION_AT CLI_LONG_OPTION(2)
#define OPTION_EXPIRES CLI_LONG_OPTION(3)
#define MESSAGE_OPTIONS                                                                            \
    { 't', "type", "TYPE", "message type, e.g. Sales.PlaceOrder" },                                \
    { 'i', "id", "ID", "message id; default: a new one" },                                         \
    { 'k', "key", "KEY", "what decides the partition, and with it the order" },                    \
    { 'H', "header", "NAME=VALUE", "a header; may be repeated" },                                  \
    { 'b', "body", "TEXT", "the body" },                                                           \
    { 'f', "body-file", "FILE", "read the body from a file; - is standard input" },                \
    { 'l', "json-lines", "FILE",                                                                   \
      "one message a line: {\"id\": .., \"key\": .., \"body\": .., \"headers\": {..}}; - is standard input" },  \
    { 'e', "endpoint", "NAME", "whose transport to use; default: the first in the file" },         \
    { OPTION_DELAY, "delay", "DURATION", "deliver it so much later, e.g. 10s, 2h, 7d" },           \
    { OPTION_AT, "at", "TIME", "deliver it not before, e.g. 2026-12-31T08:00:00Z" },               \
    { OPTION_EXPIRES, "expires", "DURATION", "drop it if nobody has received it by then" }

static const cli_option send_options[] = {
    CLI_OPTION_CONFIG,
    { 'd', "to", "QUEUE", "the destination" },
    MESSAGE_OPTIONS,
    CLI_OPTION_END,
};

static const cli_option publish_options[] = { CLI_OPTION_CONFIG, MESSAGE_OPTIONS, CLI_OPTION_END };

typedef struct {
    const cli_values *values;
    int kind;
    wb_endpoint *endpoint;
    const wb_endpoint_setup *setup;
    wb_sender sessions;
    cli_when when;
    int64_t time_to_be_received; /* ns; 0: it does not expire */
    wb_arena arena;
    wb_operation_list window;
    unsigned long sent;
    int is_open;
    const char *path;            /* the file of lines; NULL: there is none */
    unsigned long line;          /* the one that is read */
    unsigned long lines[WINDOW]; /* where the messages of the window stand */
    wb_error error;
} sender;

static int fail(const sender *s)
{
    return cli_fail(wb_error_exit_code(&s->error), "%s", s->error.text);
}

/* Of what stands in a file, the place. */
static int fail_at(const sender *s, unsigned long line, int code, const char *text)
{
    return s->path ? cli_fail(code, "%s:%lu: %s", s->path, line, text) : cli_fail(code, "%s", text);
}

/* ---- sending ---- */

static int report_refused(const sender *s, unsigned long line, const wb_operation *operation)
{
    char text[1400];
    (void)snprintf(text, sizeof text, "message \"%s\" was refused: %s", operation->id,
                   operation->reason ? operation->reason : "no reason given");
    return fail_at(s, line, operation->cause == WB_CAUSE_REFUSED ? EX_NOPERM : EX_DATAERR, text);
}

static int say_where(const sender *s, int code, size_t unknown)
{
    const unsigned long first = s->lines[0], last = s->lines[s->window.count - 1];
    if (unknown)
        return cli_fail(code, "%s: whether %zu of lines %lu to %lu were sent nobody knows; all others were, but for those refused",
                        s->path, unknown, first, last);
    return cli_fail(code, "%s: all other lines up to %lu were sent: go on behind it", s->path, last);
}

/* Each that was refused is told, and how many nobody knows about. @return `code`, or else why not all were sent. */
static int conclude(sender *s, int code)
{
    const unsigned long *line = s->lines;
    size_t unknown = 0;
    for (const wb_operation_node *node = s->window.first; node; node = node->next, line++) {
        const int result = node->operation.result;
        const int refused = result == WB_REJECT ? report_refused(s, *line, &node->operation) : EX_OK;
        s->sent += result == WB_OK;
        unknown += result != WB_OK && result != WB_REJECT;
        code = code == EX_OK ? refused : code;
    }
    if (unknown && code == EX_OK)
        code = cli_fail(EX_TEMPFAIL, "the broker does not confirm %zu messages", unknown);
    return code != EX_OK && s->path ? say_where(s, code, unknown) : code;
}

static int flush(sender *s)
{
    wb_window window = { 0 };
    wb_window_clear(&window, &s->arena);
    wb_window_add_list(&window, &s->window);
    int r = wb_endpoint_send(s->endpoint, &s->sessions, &window, wb_clock_monotonic() + TIMEOUT, &s->error);
    wb_window_free(&window);
    int code = conclude(s, r == WB_OK ? EX_OK : fail(s));
    memset(&s->window, 0, sizeof s->window);
    wb_arena_reset(&s->arena);
    return code;
}

static int add(sender *s, wb_outgoing *outgoing)
{
    outgoing->type = s->values->value['t'];
    outgoing->destination = s->kind == WB_KIND_SEND ? s->values->value['d'] : NULL;
    outgoing->delay = s->when.delay;
    outgoing->deliver_at = s->when.at;
    outgoing->time_to_be_received = s->time_to_be_received;
    if (wb_outgoing_add(wb_endpoint_origin(s->endpoint), s->kind, outgoing, sizeof *outgoing, NULL, 0,
                        &s->arena, &s->window, &s->error) != WB_OK)
        return fail_at(s, s->line, s->path ? EX_DATAERR : EX_USAGE, s->error.text);
    s->lines[s->window.count - 1] = s->line;
    return s->window.count < WINDOW ? EX_OK : flush(s);
}

/* ---- one message from the command line ---- */

static void give_text(const char *text, const char **ret_text, size_t *ret_size)
{
    *ret_text = text;
    *ret_size = text ? WB_TEXT : 0;
}

static int add_one(sender *s)
{
    wb_header headers[CLI_HEADERS_MAX];
    wb_buffer body = { 0 };
    const char *text = s->values->value['b'];
    wb_outgoing outgoing = { .headers = headers };

    int code = cli_content_headers(s->values, 'H', headers, &outgoing.header_count);
    if (code == EX_OK && s->values->value['f'])
        code = cli_content_read(s->values->value['f'], &body);
    give_text(s->values->value['i'], &outgoing.id, &outgoing.id_size);
    give_text(s->values->value['k'], &outgoing.key, &outgoing.key_size);
    outgoing.body = text ? (const void *)text : body.data;
    outgoing.body_size = text ? WB_TEXT : body.size;
    if (code == EX_OK)
        code = add(s, &outgoing);
    wb_buffer_free(&body);
    return code;
}

/* ---- many from a file ---- */

/* Nothing of a line that is wrong is sent. */
static int add_line(sender *s, const char *line, size_t size)
{
    cli_json_line message;
    char problem[CLI_PROBLEM_SIZE];
    if (cli_json_line_read(line, size, &message, problem) != 0)
        return fail_at(s, s->line, EX_DATAERR, problem);
    int code = add(s, &message.outgoing);
    cli_json_line_free(&message);
    return code;
}

static int add_lines_of(sender *s, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    int code = EX_OK;
    while (code == EX_OK && (size = getline(&line, &room, file)) > 0) {
        s->line++;
        if (line[0] != '\n')
            code = add_line(s, line, (size_t)size);
    }
    free(line);
    return code == EX_OK && ferror(file) ? cli_fail(EX_NOINPUT, "cannot read \"%s\"", s->path) : code;
}

static int add_lines(sender *s, const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file)
        return cli_fail(EX_NOINPUT, "cannot open \"%s\": %s", path, strerror(errno));
    s->path = path;
    int code = add_lines_of(s, file);
    if (file != stdin)
        (void)fclose(file);
    return code;
}

/* ---- the verbs ---- */

/* Of a file, what stands before a line that is wrong is sent. */
static int send_all(sender *s)
{
    int code = s->values->value['l'] ? add_lines(s, s->values->value['l']) : add_one(s);
    int sent = s->window.count ? flush(s) : EX_OK;
    return code == EX_OK ? sent : code;
}

static int open_sessions(sender *s)
{
    int is_stored = (s->when.delay || s->when.at) && s->setup->plan.delay_by == WB_DELAYS_BY_STORE;
    int r = is_stored ? wb_endpoint_open_storage(s->endpoint, &s->sessions.storage, &s->error) : WB_OK;
    return r == WB_OK ? wb_endpoint_open_sender(s->endpoint, &s->sessions.transport, &s->error) : r;
}

static void close_sessions(sender *s)
{
    if (s->sessions.storage)
        s->setup->persistence_ops->close(s->sessions.storage);
    if (s->sessions.transport)
        s->setup->transport_ops->close(s->sessions.transport);
}

static int open_and_send(sender *s, const wb_endpoint_setup *setup)
{
    s->setup = setup;
    if (wb_endpoint_create(setup, &s->endpoint, &s->error) != WB_OK)
        return fail(s);
    s->is_open = open_sessions(s) == WB_OK;
    int code = s->is_open ? send_all(s) : fail(s);
    close_sessions(s);
    wb_endpoint_destroy(s->endpoint);
    return code;
}

static int take_expiry(sender *s)
{
    const char *expires = s->values->value[OPTION_EXPIRES];
    if (expires && (wb_duration_parse(expires, &s->time_to_be_received) != WB_UNIT_OK || s->time_to_be_received <= 0))
        return cli_fail(EX_USAGE, "--expires \"%s\" is not a duration like 10s, 2h or 7d", expires);
    return EX_OK;
}

static int check_usage(const cli_values *values, int kind)
{
    if (!values->value['t'])
        return cli_fail(EX_USAGE, "--type is missing");
    if (kind == WB_KIND_SEND && !values->value['d'])
        return cli_fail(EX_USAGE, "--to is missing");
    if ((values->value['b'] != NULL) + (values->value['f'] != NULL) + (values->value['l'] != NULL) > 1)
        return cli_fail(EX_USAGE, "only one of --body, --body-file and --json-lines can be given");
    if (values->value['l'] && (values->value['i'] || values->value['k'] || values->value['H']))
        return cli_fail(EX_USAGE, "with --json-lines id, key and headers stand in the lines: not beside --id, --key or --header");
    return EX_OK;
}

static int run_kind(const cli_values *values, int kind)
{
    sender s = { .values = values, .kind = kind };
    wb_setup *setup = NULL;
    int code = check_usage(values, kind);
    if (code == EX_OK)
        code = cli_read_when(values->value[OPTION_DELAY], values->value[OPTION_AT], &s.when);
    if (code == EX_OK)
        code = take_expiry(&s);
    if (code == EX_OK)
        code = cli_load(values, WB_SETUP_WITHOUT_HANDLERS, &setup);
    if (code != EX_OK)
        return code;
    const wb_endpoint_setup *endpoint =
        values->value['e'] ? cli_endpoint(setup, values->value['e']) : &setup->endpoints[0];
    wb_arena_init(&s.arena, 1 << 20);
    code = endpoint ? open_and_send(&s, endpoint) : EX_USAGE;
    wb_arena_free(&s.arena);
    wb_setup_free(setup);
    if (code == EX_OK || (values->value['l'] && s.is_open))
        (void)printf("%lu sent\n", s.sent);
    return code;
}

static int run_send(const cli_values *values)
{
    return run_kind(values, WB_KIND_SEND);
}

static int run_publish(const cli_values *values)
{
    return run_kind(values, WB_KIND_PUBLISH);
}

const cli_verb cli_verb_send = {
    .name = "send",
    .summary = "send messages to a queue, and wait for the broker's confirmation",
    .help = "Exit code 65: the broker refused a message (no such queue, too large).",
    .options = send_options,
    .repeated = "H",
    .run = run_send,
};

const cli_verb cli_verb_publish = {
    .name = "publish",
    .summary = "publish events to the endpoints that subscribed to their type",
    .options = publish_options,
    .repeated = "H",
    .run = run_publish,
};

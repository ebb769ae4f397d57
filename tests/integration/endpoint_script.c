/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler that does what its message says: header "do" holds a command a line.
 *
 *   sql TEXT                    run TEXT on the plain connection
 *   defer TEXT                  the same as a deferred statement (pgsql, mysql)
 *   again TEXT                  the same as sql, on the connection that it has
 *   ignore TEXT                 the same as sql, but look away when it fails
 *   send QUEUE TYPE BODY        likewise now (WB_IMMEDIATE), memory (WB_NON_PERSISTENT)
 *   publish TYPE BODY           likewise reply
 *   echo QUEUE TYPE             send the message's own body and headers
 *   header NAME VALUE           a header of what is sent next; likewise id ID, headers N (that
 *                               many), pad N (bytes of body)
 *   delay MS, at SECONDS        what is sent next is due in so many ms, or at that time
 *   expires MS                  what is sent next expires when nobody receives it in so many ms
 *   sleep MS
 *   wait FILE                   until FILE is there
 *   fail KIND TEXT              KIND is retry or unrecoverable
 *   until N KIND TEXT           the same while the attempt is less than N
 *   later N KIND TEXT           the same while it has had less than N delayed retries
 *   unless FILE KIND TEXT       the same while there is no such file
 *   after N MS TEXT             be retried after so long, while it has had less than N delayed retries
 *   discard TEXT                have the message forgotten
 *   move QUEUE TEXT             to that error queue
 *   leave CODE                  return that number
 *   kill                        end the process on the spot
 *   misdo NAME ARGUMENT         one of endpoint_misdeeds.c
 *   once FILE                   what follows is done only the first time: FILE remembers
 *   unread TEXT, pipeline       leave the connection with an unread result, or in pipeline mode
 *                               (mysql: with a statement that nobody awaited)
 *
 * Before its first command each call inserts (id, attempt, size) into the table effects, and
 * tells the file WB_TRACE that it was called: a line "call ID ATTEMPT COUNT", which no
 * rollback takes back. Ids are in hexadecimal.
 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <waybill/handler.h>

#include "tests/integration/endpoint_script.h"

#define HEADERS_MAX 300

typedef struct {
    wb_context *ctx;
    const wb_message *message;
    size_t count; /* messages of this call */
    wb_outgoing next;
    wb_header headers[HEADERS_MAX];
} script;

void script_trace(const char *format, ...)
{
    char line[800];
    const char *path = getenv("WB_TRACE");
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    if (write(file, line, (size_t)size) < 0)
        abort();
    close(file);
}

static const char *hex_id(const wb_message *message, char text[520])
{
    for (size_t i = 0; i < message->id_size && i < 255; i++)
        (void)sprintf(text + 2 * i, "%02x", (unsigned char)message->id[i]);
    text[2 * message->id_size] = '\0';
    return text;
}

/* ---- SQL ------------------------------------------------------------------------------ */

static int add_effect(const script *s)
{
    char id[520], sql[700];
    (void)snprintf(sql, sizeof sql, "insert into effects (id, attempt, size) values ('%s', %u, %zu)",
                   hex_id(s->message, id), (unsigned)s->message->attempt, s->message->body_size);
    script_trace("call %s %u %zu\n", id, (unsigned)s->message->attempt, s->count);
    return script_sql(s->ctx, sql);
}

/* ---- sending -------------------------------------------------------------------------- */

static void add_header(script *s, const char *name, const char *value)
{
    s->headers[s->next.header_count++] = (wb_header)WB_HEADER(name, value);
    s->next.headers = s->headers;
}

static void add_headers(script *s, int count)
{
    static _Thread_local char names[HEADERS_MAX][24];
    for (int i = 0; i < count && i < HEADERS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "filler-%d", i);
        add_header(s, names[i], "x");
    }
}

static void pad(script *s, size_t size)
{
    static _Thread_local char *bytes;
    bytes = realloc(bytes, size);
    memset(bytes, 'x', size);
    s->next.body = bytes;
    s->next.body_size = size;
}

static int send_it(script *s, const char *verb, const char *type, const char *body)
{
    char id[520];
    int r;
    s->next.type = type;
    if (!s->next.body) {
        s->next.body = body;
        s->next.body_size = strlen(body);
    }
    s->next.cause = s->count > 1 ? s->message : NULL;
    if (strcmp(verb, "publish") == 0)
        r = wb_publish(s->ctx, &s->next);
    else if (strcmp(verb, "reply") == 0)
        r = wb_reply(s->ctx, &s->next);
    else
        r = wb_send(s->ctx, &s->next);
    script_trace("%s %s %d\n", verb, hex_id(s->message, id), r);
    memset(&s->next, 0, sizeof s->next);
    return r;
}

static int echo(script *s, const char *queue, const char *type)
{
    s->next.destination = queue;
    s->next.body = s->message->body;
    s->next.body_size = s->message->body_size;
    s->next.headers = s->message->headers;
    s->next.header_count = s->message->header_count;
    return send_it(s, "echo", type, "");
}

/* ---- commands ------------------------------------------------------------------------- */

static char *word(char **rest)
{
    char *at = *rest;
    char *blank = strchr(at, ' ');
    *rest = blank ? blank + 1 : at + strlen(at);
    if (blank)
        *blank = '\0';
    return at;
}

static void rest_for(int64_t milliseconds)
{
    nanosleep(&(struct timespec){ milliseconds / 1000, milliseconds % 1000 * 1000000 }, NULL);
}

static int fail(const script *s, const char *kind, const char *text)
{
    return wb_fail(s->ctx, strcmp(kind, "retry") == 0 ? WB_RETRY : WB_UNRECOVERABLE, "%s", text);
}

static int do_sql(script *s, const char *verb, char *rest)
{
    int r = strcmp(verb, "defer") == 0   ? script_defer(s->ctx, rest)
            : strcmp(verb, "again") == 0 ? script_sql_again(s->ctx, rest)
                                         : script_sql(s->ctx, rest);
    return strcmp(verb, "ignore") == 0 ? WB_OK : r;
}

static int do_leave_busy(script *s, const char *verb, char *rest)
{
    return strcmp(verb, "unread") == 0 ? script_leave_unread(s->ctx, rest)
                                       : script_leave_pipeline(s->ctx);
}

static int do_send(script *s, const char *verb, char *rest)
{
    s->next.destination = word(&rest);
    s->next.flags = strcmp(verb, "now") == 0      ? WB_IMMEDIATE
                    : strcmp(verb, "memory") == 0 ? WB_NON_PERSISTENT
                                                  : 0;
    const char *type = word(&rest);
    return send_it(s, verb, type, rest);
}

static int do_publish(script *s, const char *verb, char *rest)
{
    const char *type = word(&rest);
    return send_it(s, verb, type, rest);
}

static int do_echo(script *s, const char *verb, char *rest)
{
    const char *queue = word(&rest);
    (void)verb;
    return echo(s, queue, rest);
}

static int do_prepare(script *s, const char *verb, char *rest)
{
    char *first = word(&rest);
    if (strcmp(verb, "header") == 0)
        add_header(s, first, rest);
    else if (strcmp(verb, "headers") == 0)
        add_headers(s, atoi(first));
    else if (strcmp(verb, "pad") == 0)
        pad(s, (size_t)atol(first));
    else if (strcmp(verb, "delay") == 0)
        s->next.delay = atol(first) * WB_MILLISECONDS;
    else if (strcmp(verb, "at") == 0)
        s->next.deliver_at = atol(first) * WB_SECONDS;
    else if (strcmp(verb, "expires") == 0)
        s->next.time_to_be_received = atol(first) * WB_MILLISECONDS;
    else {
        s->next.id = first;
        s->next.id_size = WB_TEXT;
    }
    return WB_OK;
}

static int do_pause(script *s, const char *verb, char *rest)
{
    (void)s;
    if (strcmp(verb, "sleep") == 0)
        rest_for(atol(rest));
    while (strcmp(verb, "wait") == 0 && access(rest, F_OK) != 0)
        rest_for(5);
    return WB_OK;
}

static int delayed_retries(const script *s)
{
    const char *text = wb_message_header(s->message, "NServiceBus.Retries");
    return text ? atoi(text) : 0;
}

static int do_fail(script *s, const char *verb, char *rest)
{
    if (strcmp(verb, "leave") == 0)
        return atoi(rest);
    if (strcmp(verb, "until") == 0 && s->message->attempt >= (uint32_t)atoi(word(&rest)))
        return WB_OK;
    if (strcmp(verb, "later") == 0 && delayed_retries(s) >= atoi(word(&rest)))
        return WB_OK;
    if (strcmp(verb, "unless") == 0 && access(word(&rest), F_OK) == 0)
        return WB_OK;
    const char *kind = word(&rest);
    return fail(s, kind, rest);
}

static int do_retry_after(script *s, const char *verb, char *rest)
{
    (void)verb;
    int times = atoi(word(&rest));
    int64_t delay = atol(word(&rest)) * (WB_SECONDS / 1000);
    return delayed_retries(s) < times ? wb_retry_after(s->ctx, delay, rest) : WB_OK;
}

static int do_give_up(script *s, const char *verb, char *rest)
{
    if (strcmp(verb, "discard") == 0)
        return wb_discard(s->ctx, rest);
    const char *queue = word(&rest);
    return wb_move_to(s->ctx, queue, rest);
}

static int do_misdeed(script *s, const char *verb, char *rest)
{
    (void)verb;
    char *name = word(&rest);
    return script_misdo(s->ctx, s->message, name, rest);
}

static int do_kill(script *s, const char *verb, char *rest)
{
    (void)s;
    (void)verb;
    (void)rest;
    return raise(SIGKILL);
}

static const struct {
    const char *verb;
    int (*run)(script *s, const char *verb, char *rest);
} commands[] = {
    { "sql", do_sql },         { "defer", do_sql },      { "ignore", do_sql },
    { "again", do_sql },
    { "send", do_send },       { "now", do_send },       { "memory", do_send },
    { "publish", do_publish }, { "reply", do_publish },  { "echo", do_echo },
    { "header", do_prepare },  { "headers", do_prepare }, { "pad", do_prepare },
    { "id", do_prepare },      { "sleep", do_pause },    { "wait", do_pause },
    { "fail", do_fail },       { "until", do_fail },     { "leave", do_fail },
    { "later", do_fail },      { "unless", do_fail },
    { "delay", do_prepare },   { "at", do_prepare },     { "expires", do_prepare },
    { "discard", do_give_up }, { "move", do_give_up },    { "after", do_retry_after },
    { "unread", do_leave_busy }, { "pipeline", do_leave_busy }, { "kill", do_kill },
    { "misdo", do_misdeed },
};

static int run_command(script *s, char *rest)
{
    const char *verb = word(&rest);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(verb, commands[i].verb) == 0)
            return commands[i].run(s, verb, rest);
    return wb_fail(s->ctx, WB_UNRECOVERABLE, "no such command: %s", verb);
}

static int is_once(const char *line)
{
    return strncmp(line, "once ", 5) == 0;
}

/* Whether this line, and what follows it, is to be done. */
static int is_first_time(const char *line)
{
    if (!is_once(line))
        return 1;
    int file = open(line + 5, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0)
        close(file);
    return file >= 0;
}

static int run_one(wb_context *ctx, const wb_message *message, size_t count)
{
    script s = { .ctx = ctx, .message = message, .count = count };
    const char *text = wb_message_header(message, "do");
    char *lines = strdup(text ? text : ""), *position = NULL;
    int r = add_effect(&s);
    for (char *line = strtok_r(lines, "\n", &position); line && r == WB_OK && is_first_time(line);
         line = strtok_r(NULL, "\n", &position))
        r = is_once(line) ? WB_OK : run_command(&s, line);
    free(lines);
    return r;
}

static int one(wb_context *ctx, const wb_message *message)
{
    return run_one(ctx, message, 1);
}

static int batch(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    int r = WB_OK;
    for (size_t i = 0; i < count && r == WB_OK; i++)
        r = run_one(ctx, messages[i], count);
    return r;
}

WB_HANDLERS(WB_HANDLER("Test.Do", one), WB_HANDLER("Test.Also", one),
            WB_BATCH_HANDLER("Test.Batch", batch))

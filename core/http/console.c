/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/http/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/log.h"
#include "core/metrics/status.h"

#define API "/api/"

typedef struct {
    wb_console *console;
    const wb_question *question;
    wb_board *board;
    const wb_visitor *visitor; /* who is signed in; NULL: nobody */
    wb_answer *answer;
} visit;

/* ---- who asks ---------------------------------------------------------------------------- */

/* A browser says where a page is from that asks for something; who says nothing is no browser, or an old one, and has no cookie of ours for
 * others' pages: it is SameSite. */
static int is_of_our_page(const wb_question *question)
{
    char ours[300];
    if (question->site && strcmp(question->site, "same-origin") != 0)
        return 0;
    if (!question->origin)
        return 1;
    (void)snprintf(ours, sizeof ours, "%s://%s", question->is_tls ? "https" : "http", question->host ? question->host : "");
    return strcasecmp(question->origin, ours) == 0;
}

static const wb_visitor *find_visitor(wb_console *console, const wb_question *question)
{
    return question->cookie ? wb_access_find(&console->access, question->cookie, question->now) : NULL;
}

/* By a cookie, or by saying the token each time. */
static int may_look(const visit *v)
{
    return v->visitor || wb_question_knows_token(v->question);
}

/* A browser has to say what only a page of ours can read; a program says the token. */
static int may_change(const visit *v)
{
    const wb_question *question = v->question;
    if (!question->token || !is_of_our_page(question))
        return 0;
    if (v->visitor)
        return wb_access_is_same(question->page_token, v->visitor->token);
    return wb_question_knows_token(question);
}

/* ---- sessions ---------------------------------------------------------------------------- */

static void tell_session(const visit *v)
{
    const int may = may_look(v);
    wb_answer_json(v->answer, 200,
                   json_pack("{s:s, s:b, s:b, s:s*, s:b}", "version", PACKAGE_VERSION, "needs_token", v->question->token != NULL,
                             "signed_in", may, "token", v->visitor ? v->visitor->token : NULL, "write",
                             may && v->console->config->write));
}

static void log_session(const visit *v)
{
    char number[12];
    (void)snprintf(number, sizeof number, "%u", v->visitor->number);
    wb_log_event(WB_LOG_INFO, "somebody signed in to the console", { "session", number }, { "address", v->question->address });
}

static void begin_session(visit *v)
{
    if (!is_of_our_page(v->question)) {
        wb_answer_refuse(v->answer, 403, "this is for pages of this address");
        return;
    }
    if (!wb_question_knows_token(v->question)) {
        wb_answer_refuse(v->answer, 401, "this is not the token");
        return;
    }
    if (v->visitor)
        wb_access_leave(&v->console->access, v->visitor->cookie);
    v->visitor = wb_access_enter(&v->console->access, v->question->now);
    if (!v->visitor) {
        wb_answer_refuse(v->answer, 500, "the kernel gives no random bytes");
        return;
    }
    log_session(v);
    tell_session(v);
    v->answer->cookie = v->visitor->cookie;
}

static void end_session(visit *v)
{
    if (!is_of_our_page(v->question)) {
        wb_answer_refuse(v->answer, 403, "this is for pages of this address");
        return;
    }
    if (v->visitor)
        wb_access_leave(&v->console->access, v->visitor->cookie);
    v->visitor = NULL;
    tell_session(v);
    v->answer->cookie = "";
}

/* ---- what the process knows --------------------------------------------------------------- */

static void tell_status(const visit *v)
{
    wb_overview overview;
    wb_board_read(v->board, &overview);
    wb_answer_json(v->answer, 200, wb_status_json(&overview));
    free((void *)(uintptr_t)overview.endpoints);
}

static void tell_history(const visit *v)
{
    wb_overview overview;
    wb_board_read(v->board, &overview);
    wb_answer_json(v->answer, 200, wb_history_json(v->console->history, &overview));
    free((void *)(uintptr_t)overview.endpoints);
}

static void tell_plan(const visit *v)
{
    wb_answer_json(v->answer, 200, json_incref(v->console->plan));
}

static void begin_events(const visit *v)
{
    v->answer->status = 200;
    v->answer->type = "text/event-stream";
    v->answer->is_stream = 1;
}

static const struct known {
    const char *path;
    void (*tell)(const visit *v);
} all_known[] = { { API "status", tell_status },
                  { API "events", begin_events },
                  { API "history", tell_history },
                  { API "plan", tell_plan } };

static const struct known *find_known(const char *path)
{
    for (size_t i = 0; i < sizeof all_known / sizeof all_known[0]; i++)
        if (strcmp(all_known[i].path, path) == 0)
            return &all_known[i];
    return NULL;
}

static const wb_deed *find_deed(const wb_console *console, const char *path)
{
    for (size_t i = 0; i < console->deeds.count; i++)
        if (strcmp(console->deeds.all[i].path, path) == 0)
            return &console->deeds.all[i];
    return NULL;
}

/* ---- who is answered what ----------------------------------------------------------------- */

static int is_get(const wb_question *question)
{
    return strcmp(question->method, "GET") == 0 || strcmp(question->method, "HEAD") == 0;
}

static void answer_session(visit *v)
{
    if (is_get(v->question))
        tell_session(v);
    else if (strcmp(v->question->method, "POST") == 0)
        begin_session(v);
    else if (strcmp(v->question->method, "DELETE") == 0)
        end_session(v);
    else
        wb_answer_refuse(v->answer, 405, "there are GET, POST and DELETE");
}

static void send_to_desk(visit *v, const wb_deed *deed, const json_t *given)
{
    if (wb_desk_has_room(v->console->desk))
        v->answer->errand = wb_errand_make(deed, given);
    else
        wb_answer_refuse(v->answer, 503, "too many ask at once: ask again in a while");
}

/* "session 3, 127.0.0.1" */
static json_t *who(const visit *v)
{
    char text[120];
    if (v->visitor)
        (void)snprintf(text, sizeof text, "session %u, %.60s", v->visitor->number, v->question->address ? v->question->address : "");
    else
        (void)snprintf(text, sizeof text, "token, %.60s", v->question->address ? v->question->address : "");
    return json_string(text);
}

static void refuse_length(const visit *v)
{
    char text[100];
    (void)snprintf(text, sizeof text, "what was sent is too long: it may have %zu bytes", v->question->exceeded);
    wb_answer_refuse(v->answer, 413, text);
}

static void answer_change(visit *v, const wb_deed *deed)
{
    if (strcmp(v->question->method, "POST") != 0) {
        wb_answer_refuse(v->answer, 405, "there is nothing but POST");
    } else if (!v->console->config->write) {
        wb_answer_refuse(v->answer, 403, "the console may change nothing: see console.write in the configuration");
    } else if (!may_change(v)) {
        wb_answer_refuse(v->answer, 403, "this is for pages of this address, which say the token of their session");
    } else if (v->question->exceeded) {
        refuse_length(v);
    } else if (!json_is_object(v->question->given)) {
        wb_answer_refuse(v->answer, 400, "what was sent is no object of JSON");
    } else {
        json_t *given = json_copy((json_t *)(uintptr_t)v->question->given);
        json_object_set_new(given, "who", who(v));
        send_to_desk(v, deed, given);
        json_decref(given);
    }
}

/* Strangers make nobody keep more than a little. */
size_t wb_console_body_max(wb_console *console, const wb_question *question)
{
    const wb_deed *deed = find_deed(console, question->path);
    const visit v = { .console = console, .question = question, .visitor = find_visitor(console, question) };
    if (!deed || !deed->changes || strcmp(question->method, "POST") != 0)
        return 0;
    return deed->sent_max && console->config->write && may_change(&v) ? deed->sent_max : WB_HTTP_BODY_MAX;
}

static void answer_api(visit *v)
{
    const char *path = v->question->path;
    const struct known *known = find_known(path);
    const wb_deed *deed = find_deed(v->console, path);
    if (strcmp(path, API "session") == 0)
        answer_session(v);
    else if (!may_look(v))
        wb_answer_refuse(v->answer, 401, "sign in: a token is needed");
    else if (!known && !deed)
        wb_answer_refuse(v->answer, 404, "there is no such thing to ask for");
    else if (deed && deed->changes)
        answer_change(v, deed);
    else if (!is_get(v->question))
        wb_answer_refuse(v->answer, 405, "there is nothing but GET");
    else if (known)
        known->tell(v);
    else
        send_to_desk(v, deed, v->question->given);
}

static const wb_asset *find_asset(const wb_console *console, const char *path)
{
    for (size_t i = 0; i < console->asset_count; i++)
        if (strcmp(console->assets[i].path, path) == 0)
            return &console->assets[i];
    return NULL;
}

static void answer_asset(const wb_asset *asset, const wb_question *question, wb_answer *answer)
{
    if (!is_get(question)) {
        wb_answer_say(answer, 405, "there is nothing but GET");
        return;
    }
    answer->status = 200;
    answer->type = asset->type;
    answer->lasting = asset->data;
    answer->lasting_size = asset->size;
}

int wb_console_has(const wb_console *console, const char *path)
{
    return strncmp(path, API, sizeof API - 1) == 0 || find_asset(console, path) != NULL;
}

void wb_console_answer(wb_console *console, const wb_question *question, wb_board *board, wb_answer *answer)
{
    const wb_asset *asset = find_asset(console, question->path);
    visit v = { .console = console, .question = question, .board = board, .answer = answer };
    if (asset) {
        answer_asset(asset, question, answer);
    } else {
        v.visitor = find_visitor(console, question);
        answer_api(&v);
    }
    answer->is_page = 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/http/answers.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/http/console.h"
#include "core/metrics/exposition.h"
#include "core/metrics/status.h"

/* ---- the paths --------------------------------------------------------------------------- */

static void answer_metrics(const wb_overview *overview, wb_answer *answer)
{
    answer->status = 200;
    answer->type = WB_EXPOSITION_TYPE;
    wb_exposition_write(overview, &answer->text);
}

static void answer_status(const wb_overview *overview, wb_answer *answer)
{
    json_t *value = wb_status_json(overview);
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    wb_answer_say(answer, text ? 200 : 500, text ? text : "out of memory");
    answer->type = text ? WB_ANSWER_JSON : WB_ANSWER_PLAIN;
    free(text);
    json_decref(value);
}

static void answer_live(const wb_overview *overview, wb_answer *answer)
{
    const int is_alive = wb_status_is_alive(overview);
    wb_answer_say(answer, is_alive ? 200 : 503, is_alive ? "alive" : "stuck");
}

static void answer_ready(const wb_overview *overview, wb_answer *answer)
{
    const int is_ready = wb_status_is_ready(overview);
    wb_answer_say(answer, is_ready ? 200 : 503, is_ready ? "ready" : "not ready");
}

typedef struct {
    const char *path;
    int is_open; /* to who has no token: it says one word */
    void (*answer)(const wb_overview *overview, wb_answer *answer);
} page;

static const page pages[] = {
    { "/metrics", 0, answer_metrics },
    { "/status", 0, answer_status },
    { "/health/live", 1, answer_live },
    { "/health/ready", 1, answer_ready },
};

static const page *find_page(const char *path)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strcmp(pages[i].path, path) == 0)
            return &pages[i];
    return NULL;
}

/* ---- whom -------------------------------------------------------------------------------- */

int wb_question_knows_token(const wb_question *question)
{
    static const char scheme[] = "Bearer ";
    const char *given = question->authorization;
    if (!question->token)
        return 1;
    return given && strncasecmp(given, scheme, sizeof scheme - 1) == 0 &&
           wb_access_is_same(given + sizeof scheme - 1, question->token);
}

/* Without a token it is enough to be on this host; but a page in somebody's browser, whose name leads here, is not. */
static int is_for_us(const wb_question *question)
{
    struct in_addr four;
    char host[64];
    const char *given = question->host;
    if (question->token || !given || *given == '[')
        return 1;
    const size_t size = strcspn(given, ":");
    if (size >= sizeof host)
        return 0;
    memcpy(host, given, size);
    host[size] = '\0';
    return strcasecmp(host, "localhost") == 0 || inet_pton(AF_INET, host, &four) == 1;
}

static int is_get(const wb_question *question)
{
    return strcmp(question->method, "GET") == 0 || strcmp(question->method, "HEAD") == 0;
}

static void answer_page(const page *found, wb_board *board, wb_answer *answer)
{
    wb_overview overview;
    wb_board_read(board, &overview);
    found->answer(&overview, answer);
    free((void *)(uintptr_t)overview.endpoints);
}

void wb_answer_make(const wb_question *question, wb_board *board, wb_console *console, wb_answer *answer)
{
    const page *found = find_page(question->path);
    const int is_console = console && wb_console_has(console, question->path);
    memset(answer, 0, sizeof *answer);
    if (!is_get(question) && !is_console)
        wb_answer_say(answer, 405, "there is nothing but GET");
    else if (!is_for_us(question))
        wb_answer_say(answer, 421, "ask by the address, or set a token");
    else if (is_console)
        wb_console_answer(console, question, board, answer);
    else if (found && !found->is_open && !wb_question_knows_token(question))
        wb_answer_say(answer, 401, "a token is needed: Authorization: Bearer TOKEN");
    else if (!found)
        wb_answer_say(answer, 404, "there are /metrics, /status, /health/live and /health/ready");
    else
        answer_page(found, board, answer);
}

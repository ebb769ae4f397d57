/* SPDX-License-Identifier: Apache-2.0
 *
 * A program with transactional sessions: does what the lines of its standard input say, and answers each
 * with a line. The first letters of a line choose; sessions have names of the test's own.
 *
 *   endpoint CONFIG NAME [handlers]        open S [ID]             sql S STATEMENT    defer S STATEMENT
 *   hasty S                                opens a session, or gives up soon
 *   send S QUEUE TYPE BODY                 publish S TYPE BODY     later S QUEUE MILLISECONDS BODY
 *   now S QUEUE BODY                       reply S                 fail S CLASS TEXT
 *   commit S                               close S                 id S               log TEXT-PREFIX
 *   load COUNT THREADS QUEUE PREFIX        sessions of several threads: an effect and a message each
 *   run | quit                             the endpoint's handlers, on a thread
 *   catch                                  SIGTERM quits, by a handler of the program's
 *   end
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <waybill/session.h>

#include "tests/integration/endpoint_script.h"

#define SESSIONS 64
#define LINE_SIZE 65536
#define WORDS 8

static wb_endpoint *endpoint;
static wb_session *sessions[SESSIONS];
static char names[SESSIONS][64];
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static const char *class_name(int result)
{
    static const char *const classes[] = { "OK", "RETRY", "ABORT", "REJECT", "IN_DOUBT", "NOT_CONNECTED", "FATAL" };
    return result >= 0 && result <= 6 ? classes[result] : "?";
}

/* A reason may have several lines. */
static const char *on_one_line(const wb_reason *reason, char *text)
{
    strcpy(text, reason->text);
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    return text;
}

static void answer(int result, const wb_reason *reason)
{
    char text[sizeof reason->text];
    pthread_mutex_lock(&output);
    if (result == WB_OK)
        (void)printf("OK\n");
    else if (reason)
        (void)printf("%s %d %s\n", class_name(result), reason->cause, on_one_line(reason, text));
    else
        (void)printf("%s\n", class_name(result));
    (void)fflush(stdout);
    pthread_mutex_unlock(&output);
}

static wb_session **place_of(const char *name)
{
    int found = -1;
    for (int i = 0; i < SESSIONS; i++) {
        if (sessions[i] && strcmp(names[i], name) == 0)
            return &sessions[i];
        if (!sessions[i] && found < 0)
            found = i;
    }
    if (found < 0)
        exit(2);
    (void)snprintf(names[found], sizeof names[found], "%s", name);
    return &sessions[found];
}

/* ---- sessions ------------------------------------------------------------------------- */

static void open_one(char **word, int count)
{
    wb_reason reason = { 0 };
    const wb_session_options options = { .id = count > 2 ? word[2] : NULL, .id_size = count > 2 ? WB_TEXT : 0 };
    answer(wb_session_open(endpoint, &options, sizeof options, place_of(word[1]), &reason), &reason);
}

static void open_hastily(char **word)
{
    wb_reason reason = { 0 };
    const wb_session_options options = { .patience = 200 * INT64_C(1000000) };
    answer(wb_session_open(endpoint, &options, sizeof options, place_of(word[1]), &reason), &reason);
}

static int send_one(wb_session *session, const char *queue, const char *type, const char *body, int64_t delay)
{
    const wb_outgoing outgoing = { .type = type, .destination = queue, .body = body, .body_size = strlen(body), .delay = delay };
    return queue ? wb_session_send(session, &outgoing) : wb_session_publish(session, &outgoing);
}

static int send_now(wb_session *session, const char *queue, const char *body)
{
    return wb_session_send(session, &(wb_outgoing){ .type = "Test.Now", .destination = queue, .body = body,
                                                     .body_size = strlen(body), .flags = WB_IMMEDIATE });
}

static int class_of(const char *name)
{
    for (int i = 0; i <= 6; i++)
        if (strcmp(class_name(i), name) == 0)
            return i;
    return WB_RETRY;
}

static void close_one(wb_session **session)
{
    wb_session_close(*session);
    *session = NULL;
    answer(WB_OK, NULL);
}

/* ---- many ----------------------------------------------------------------------------- */

typedef struct load {
    pthread_t thread;
    int first, step, count;
    const char *queue, *prefix;
} load;

static int run_session(const load *l, int number, wb_reason *reason)
{
    char id[80], statement[200];
    wb_session *session;
    (void)snprintf(id, sizeof id, "%s%d", l->prefix, number);
    (void)snprintf(statement, sizeof statement, "insert into effects values ('%s', 1, 0)", id);
    const wb_session_options options = { .id = id, .id_size = WB_TEXT };
    int r = wb_session_open(endpoint, &options, sizeof options, &session, reason);
    if (r != WB_OK)
        return r;
    if (script_sql(wb_session_context(session), statement) == WB_OK)
        (void)send_one(session, l->queue, "Test.Session", id, 0);
    r = wb_session_commit(session, reason);
    wb_session_close(session);
    return r;
}

static void say(int number, int result, const wb_reason *reason)
{
    char text[sizeof reason->text];
    pthread_mutex_lock(&output);
    (void)printf("%d %s %d %s\n", number, class_name(result), result == WB_OK ? 0 : reason->cause,
                 result == WB_OK ? "" : on_one_line(reason, text));
    (void)fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void *load_main(void *argument)
{
    load *l = argument;
    for (int i = l->first; i < l->count; i += l->step) {
        wb_reason reason = { 0 };
        int r = run_session(l, i, &reason);
        say(i, r, &reason);
    }
    return NULL;
}

static void load_all(char **word)
{
    enum { MOST = 64 };
    load all[MOST];
    int threads = atoi(word[2]) < MOST ? atoi(word[2]) : MOST;
    for (int i = 0; i < threads; i++) {
        all[i] = (load){ .first = i, .step = threads, .count = atoi(word[1]), .queue = word[3], .prefix = word[4] };
        if (pthread_create(&all[i].thread, NULL, load_main, &all[i]) != 0)
            exit(2);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(all[i].thread, NULL);
    answer(WB_OK, NULL);
}

/* ---- handlers ------------------------------------------------------------------------- */

static pthread_t runner;

static void *run_main(void *argument)
{
    wb_reason reason = { 0 };
    (void)argument;
    answer(wb_endpoint_run(endpoint, &reason), &reason);
    return NULL;
}

static void quit_on_signal(int number)
{
    (void)number;
    wb_endpoint_quit(endpoint);
}

static int catch_signal(void)
{
    const struct sigaction action = { .sa_handler = quit_on_signal, .sa_flags = SA_RESTART };
    return sigaction(SIGTERM, &action, NULL) == 0 ? WB_OK : WB_FATAL;
}

/* ---- lines ---------------------------------------------------------------------------- */

static void write_log(void *argument, int level, const char *line, size_t size)
{
    (void)level;
    (void)fprintf(argument, "%.*s\n", (int)size, line);
    (void)fflush(argument);
}

static void open_endpoint(char **word, int count)
{
    wb_reason reason = { 0 };
    const wb_endpoint_options options = { .config = word[1], .name = count > 2 ? word[2] : NULL,
                                          .flags = count > 3 ? WB_ENDPOINT_HANDLERS : 0 };
    answer(wb_endpoint_open(&options, sizeof options, &endpoint, &reason), &reason);
}

/* The last of `most` words is the rest of the line. */
static int split(char *line, char **word, int most)
{
    int count = 0;
    while (*line && count < most) {
        word[count++] = line;
        line = count < most ? strchr(line, ' ') : NULL;
        if (!line)
            break;
        *line++ = '\0';
    }
    return count;
}

static int words_of(const char *line)
{
    static const struct {
        const char *verb;
        int most;
    } verbs[] = { { "send ", 5 }, { "publish ", 4 }, { "later ", 5 }, { "now ", 4 }, { "fail ", 4 },
                  { "sql ", 3 },  { "defer ", 3 },   { "open ", 3 },  { "load ", 5 } };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strncmp(line, verbs[i].verb, strlen(verbs[i].verb)) == 0)
            return verbs[i].most;
    return WORDS;
}

static void do_session(const char *verb, char **word)
{
    wb_reason reason = { 0 };
    wb_session **session = place_of(word[1]);
    wb_context *ctx = wb_session_context(*session);
    if (strcmp(verb, "sql") == 0)
        answer(script_sql(ctx, word[2]), NULL);
    else if (strcmp(verb, "defer") == 0)
        answer(script_defer(ctx, word[2]), NULL);
    else if (strcmp(verb, "send") == 0)
        answer(send_one(*session, word[2], word[3], word[4], 0), NULL);
    else if (strcmp(verb, "publish") == 0)
        answer(send_one(*session, NULL, word[2], word[3], 0), NULL);
    else if (strcmp(verb, "later") == 0)
        answer(send_one(*session, word[2], "Test.Later", word[4], atoi(word[3]) * INT64_C(1000000)), NULL);
    else if (strcmp(verb, "now") == 0)
        answer(send_now(*session, word[2], word[3]), NULL);
    else if (strcmp(verb, "reply") == 0)
        answer(wb_reply(ctx, &(wb_outgoing){ .type = "Test.Reply" }), NULL);
    else if (strcmp(verb, "fail") == 0)
        answer(wb_fail(ctx, class_of(word[2]), "%s", word[3]), NULL);
    else if (strcmp(verb, "commit") == 0)
        answer(wb_session_commit(*session, &reason), &reason);
    else if (strcmp(verb, "id") == 0)
        (void)printf("%s\n", wb_session_id(*session));
    else if (strcmp(verb, "close") == 0)
        close_one(session);
    else
        (void)printf("? %s\n", verb);
}

static void do_line(char *line)
{
    char *word[WORDS] = { NULL };
    int count = split(line, word, words_of(line));
    if (strcmp(word[0], "endpoint") == 0)
        open_endpoint(word, count);
    else if (strcmp(word[0], "open") == 0)
        open_one(word, count);
    else if (strcmp(word[0], "hasty") == 0)
        open_hastily(word);
    else if (strcmp(word[0], "load") == 0)
        load_all(word);
    else if (strcmp(word[0], "run") == 0)
        answer(pthread_create(&runner, NULL, run_main, NULL) == 0 ? WB_OK : WB_FATAL, NULL);
    else if (strcmp(word[0], "catch") == 0)
        answer(catch_signal(), NULL);
    else if (strcmp(word[0], "quit") == 0) {
        wb_endpoint_quit(endpoint);
        pthread_join(runner, NULL);
        answer(WB_OK, NULL);
    } else
        do_session(word[0], word);
    (void)fflush(stdout);
}

/* Not by stdio: a handler that calls exit() would wait for the lock of a stream that is being read (glibc 2.41). */
static int read_line(char *line, size_t size)
{
    size_t used = 0;
    while (used + 1 < size && read(STDIN_FILENO, line + used, 1) == 1 && line[used] != '\n')
        used++;
    const int is_whole = used + 1 < size && line[used] == '\n';
    line[used] = '\0';
    return is_whole;
}

int main(void)
{
    static char line[LINE_SIZE];
    const char *log = getenv("SESSION_LOG");
    FILE *file = log ? fopen(log, "a") : NULL;
    if (file)
        wb_log_to(write_log, file);
    while (read_line(line, sizeof line) && strcmp(line, "end") != 0)
        do_line(line);
    for (int i = 0; i < SESSIONS; i++)
        wb_session_close(sessions[i]);
    wb_endpoint_close(endpoint);
    (void)printf("ended\n");
    return 0;
}

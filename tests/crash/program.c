/* SPDX-License-Identifier: Apache-2.0
 *
 * A program with transactional sessions for the crash suite: a line "ID<tab>TYPE<tab>BODY" of its
 * standard input is a message that nobody sent. What its handler (effects-*.c) does, a session does, whose id
 * is the message's; "ID<tab>CLASS<tab>CAUSE" (numbers of waybill/session.h) is the answer, once it is known.
 *
 *   program-STORE CONFIG ENDPOINT
 *
 * A key whose session came too late may be used again by who was told so: it is, once. Several threads take lines in turn. Lines that are left when the process dies have no answer.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <waybill/session.h>

#define THREADS 3
#define LINE_SIZE 4096

const wb_handler_module *wb_handlers(void);

static wb_endpoint *endpoint;

static void write_log(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)level;
    (void)fprintf(stderr, "%.*s\n", (int)size, line);
}

/* In one write: another process may write to the same file. */
static void answer(const char *id, int result, int cause)
{
    char line[512];
    int size = snprintf(line, sizeof line, "%.400s\t%d\t%d\n", id, result, cause);
    if (write(STDOUT_FILENO, line, (size_t)size) != size)
        abort();
}

static void tell(const char *id, int result, const wb_reason *reason)
{
    if (result != WB_OK)
        (void)fprintf(stderr, "%s: %s\n", id, reason->text);
    answer(id, result, result == WB_OK ? 0 : reason->cause);
}

/* What it returns, the commit knows, too. */
static void handle(wb_context *ctx, const wb_message *message, const char *type)
{
    const wb_handler_module *module = wb_handlers();
    for (size_t i = 0; i < module->handler_count; i++) {
        const wb_handler *handler = &module->handlers[i];
        if (strcmp(handler->type, type) != 0)
            continue;
        if (handler->one)
            (void)handler->one(ctx, message);
        else
            (void)handler->batch(ctx, &message, 1);
        return;
    }
    abort();
}

static int commit(const char *id, const char *type, const char *body, wb_reason *reason)
{
    const wb_message message = { .struct_size = sizeof message, .type = type, .id = id, .id_size = strlen(id), .body = body, .body_size = strlen(body), .attempt = 1 };
    wb_session *session;
    int r = wb_session_open(endpoint, &(wb_session_options){ .id = id, .id_size = WB_TEXT }, sizeof(wb_session_options), &session, reason);
    if (r != WB_OK)
        return r;
    handle(wb_session_context(session), &message, type);
    r = wb_session_commit(session, reason);
    wb_session_close(session);
    return r;
}

static void *work(void *argument)
{
    char line[LINE_SIZE];
    (void)argument;
    while (fgets(line, sizeof line, stdin)) { /* stdio has a lock of its own */
        char *rest, *id = strtok_r(line, "\t", &rest);
        const char *type = strtok_r(NULL, "\t", &rest), *body = strtok_r(NULL, "\n", &rest);
        wb_reason reason = { 0 };
        if (!body)
            abort();
        int r = commit(id, type, body, &reason);
        tell(id, r, &reason);
        if (r != WB_OK && reason.cause == WB_CAUSE_EXPIRED) {
            r = commit(id, type, body, &reason);
            tell(id, r, &reason);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    wb_reason reason;
    pthread_t threads[THREADS];
    const wb_endpoint_options options = { .config = argv[1], .name = argv[2] };
    wb_log_to(write_log, NULL);
    if (argc != 3 || wb_endpoint_open(&options, sizeof options, &endpoint, &reason) != WB_OK) {
        (void)fprintf(stderr, "program: %s\n", argc == 3 ? reason.text : "a configuration and the name of an endpoint");
        return 1;
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    wb_endpoint_close(endpoint);
    return 0;
}

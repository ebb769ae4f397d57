/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/question.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/endpoint/rest.h"

typedef struct {
    const char *name;
    wb_endpoint *endpoint;
    wb_endpoint *probe;
    unsigned receiving; /* workers, which have had nothing for a while */
} asked;

struct cli_question {
    pthread_t thread;
    atomic_size_t at; /* the step: the tables of all, then the queues of all */
    atomic_int is_answered;
    int is_empty;
    char left[700];
    size_t count;
    asked all[];
};

static void note(cli_question *question, const asked *one, const char *what)
{
    (void)snprintf(question->left, sizeof question->left, "endpoint \"%s\": %.500s", one->name, what);
}

static void add(char *text, size_t size, int is_there, const char *what)
{
    const size_t used = strlen(text);
    if (is_there)
        (void)snprintf(text + used, size - used, "%s%s", used ? ", " : "", what);
}

/* What is there, and nothing of what is not. */
static void describe_rest(const wb_rest *rest, char *text, size_t size)
{
    char rows[60];
    (void)snprintf(rows, sizeof rows, "%zu %s", rest->pending,
                   rest->pending == 1 ? "row of operations is pending" : "rows of operations are pending");
    *text = '\0';
    add(text, size, rest->pending != 0, rows);
    add(text, size, rest->is_delayed, "messages are delayed");
    add(text, size, rest->is_written, "messages written in SQL wait");
}

/* @return whether nothing is left in its tables. */
static int has_empty_tables(cli_question *question, const asked *one)
{
    wb_rest rest;
    wb_error error = { 0 };
    char text[120];
    if (wb_rest_ask(one->endpoint, &rest, &error) != WB_OK) {
        note(question, one, error.text);
        return 0;
    }
    describe_rest(&rest, text, sizeof text);
    note(question, one, text);
    return !rest.pending && !rest.is_delayed && !rest.is_written;
}

/* @return whether nothing waits in its queue, for whomever. */
static int has_empty_queue(cli_question *question, const asked *one)
{
    wb_transport_depth depth;
    wb_error error = { 0 };
    char text[120];
    if (wb_rest_count_waiting(one->probe, &depth, &error) != WB_OK) {
        note(question, one, error.text);
        return 0;
    }
    (void)snprintf(text, sizeof text, "%" PRIu64 " %s in its queue%s", depth.messages,
                   depth.messages == 1 ? "message waits" : "messages wait",
                   one->receiving ? ", and this instance gets none of them" : "");
    note(question, one, text);
    return !depth.messages;
}

/* What left a table meanwhile is in a queue: these are asked behind all tables. */
static int is_empty_at(cli_question *question, size_t at)
{
    const size_t count = question->count;
    return at < count ? has_empty_tables(question, &question->all[at]) : has_empty_queue(question, &question->all[at - count]);
}

static void *ask(void *argument)
{
    cli_question *question = argument;
    size_t at = 0;
    while (at < 2 * question->count && is_empty_at(question, at))
        atomic_store(&question->at, ++at);
    question->is_empty = at == 2 * question->count;
    atomic_store(&question->is_answered, 1);
    return NULL;
}

static asked describe(const cli_hosted *one)
{
    unsigned overdue;
    return (asked){ one->setup->config->name, one->endpoint, one->probe, wb_endpoint_working(one->endpoint, &overdue) };
}

cli_question *cli_question_ask(const cli_hosted *hosted, size_t count, int (*takes_part)(const cli_hosted *one))
{
    cli_question *question = wb_alloc_zero(1, sizeof *question + count * sizeof *question->all);
    for (size_t i = 0; i < count; i++)
        if (takes_part(&hosted[i]))
            question->all[question->count++] = describe(&hosted[i]);
    if (pthread_create(&question->thread, NULL, ask, question) == 0)
        return question;
    free(question);
    return NULL;
}

int cli_question_is_answered(const cli_question *question, char *waits_for, size_t size)
{
    const size_t at = atomic_load(&question->at), count = question->count;
    if (atomic_load(&question->is_answered))
        return 1;
    if (at < 2 * count) /* between its last step and its end it waits for nobody */
        (void)snprintf(waits_for, size, "endpoint \"%s\": its %s", question->all[at % count].name,
                       at < count ? "database does not tell what is left in its tables"
                                  : "broker does not tell what waits in its queue");
    return 0;
}

int cli_question_take(cli_question *question, char *left, size_t size)
{
    pthread_join(question->thread, NULL);
    const int is_empty = question->is_empty;
    (void)snprintf(left, size, "%s", question->left);
    free(question);
    return is_empty;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/question.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/endpoint/rest.h"

typedef struct {
    const char *name;
    wb_endpoint *endpoint;
} asked;

struct cli_question {
    pthread_t thread;
    atomic_size_t at; /* the one that is asked */
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

/* @return whether nothing is left in its tables. */
static int is_done(cli_question *question, const asked *one)
{
    wb_rest rest;
    wb_error error = { 0 };
    char text[120];
    if (wb_rest_ask(one->endpoint, &rest, &error) != WB_OK) {
        note(question, one, error.text);
        return 0;
    }
    (void)snprintf(text, sizeof text, "%zu rows with pending operations, %s delayed messages", rest.pending,
                   rest.is_delayed ? "and" : "no");
    note(question, one, text);
    return !rest.pending && !rest.is_delayed;
}

static void *ask(void *argument)
{
    cli_question *question = argument;
    size_t at = 0;
    while (at < question->count && is_done(question, &question->all[at]))
        atomic_store(&question->at, ++at);
    question->is_empty = at == question->count;
    atomic_store(&question->is_answered, 1);
    return NULL;
}

cli_question *cli_question_ask(const cli_hosted *hosted, size_t count, int (*takes_part)(const cli_hosted *one))
{
    cli_question *question = wb_alloc_zero(1, sizeof *question + count * sizeof *question->all);
    for (size_t i = 0; i < count; i++)
        if (takes_part(&hosted[i]))
            question->all[question->count++] = (asked){ hosted[i].setup->config->name, hosted[i].endpoint };
    if (pthread_create(&question->thread, NULL, ask, question) == 0)
        return question;
    free(question);
    return NULL;
}

int cli_question_is_answered(const cli_question *question, const char **ret_name)
{
    const size_t at = atomic_load(&question->at);
    *ret_name = at < question->count ? question->all[at].name : "";
    return atomic_load(&question->is_answered);
}

int cli_question_take(cli_question *question, char *left, size_t size)
{
    pthread_join(question->thread, NULL);
    const int is_empty = question->is_empty;
    (void)snprintf(left, size, "%s", question->left);
    free(question);
    return is_empty;
}

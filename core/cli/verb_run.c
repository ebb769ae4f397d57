/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cli/cli.h"
#include "core/endpoint/endpoint.h"

/* How often the main thread looks whether an endpoint gave up, or has finished. */
#define LOOK_EVERY (100 * WB_MILLISECOND)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "this endpoint only" },
    { 'i', "install", NULL, "make queues and tables first, as waybill install does" },
    CLI_OPTION_END,
};

typedef struct {
    wb_endpoint **endpoints;
    const wb_endpoint_setup **setups;
    size_t count;
    size_t started;
    int64_t patience; /* longest shutdown_timeout */
} host;

static int report(const host *h, size_t i, const wb_error *error)
{
    return cli_fail(wb_error_exit_code(error), "endpoint \"%s\": %s", h->setups[i]->config->name, error->text);
}

static int choose(host *h, const wb_setup *setup, const char *name)
{
    h->endpoints = wb_alloc_zero(setup->endpoint_count, sizeof(wb_endpoint *));
    h->setups = wb_alloc_zero(setup->endpoint_count, sizeof(wb_endpoint_setup *));
    if (name) {
        h->setups[h->count++] = cli_endpoint(setup, name);
        return h->setups[0] ? EX_OK : EX_USAGE;
    }
    for (size_t i = 0; i < setup->endpoint_count; i++)
        h->setups[h->count++] = &setup->endpoints[i];
    return EX_OK;
}

static int prepare(host *h, int install)
{
    wb_error error = { 0 };
    for (size_t i = 0; i < h->count; i++) {
        int r = wb_endpoint_create(h->setups[i], &h->endpoints[i], &error);
        if (r == WB_OK && install)
            r = wb_endpoint_install(h->endpoints[i], &error);
        if (r == WB_OK)
            r = wb_endpoint_verify(h->endpoints[i], &error);
        if (r != WB_OK)
            return report(h, i, &error);
        if (h->setups[i]->config->shutdown_timeout > h->patience)
            h->patience = h->setups[i]->config->shutdown_timeout;
    }
    return EX_OK;
}

static int start(host *h)
{
    wb_error error = { 0 };
    for (; h->started < h->count; h->started++)
        if (wb_endpoint_start(h->endpoints[h->started], &error) != WB_OK)
            return report(h, h->started, &error);
    return EX_OK;
}

static int all_ended(const host *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (!wb_endpoint_has_ended(h->endpoints[i]))
            return 0;
    return 1;
}

/* @return the signal, or 0 when all endpoints have ended or `until` has come. */
static int wait_for_signal(const host *h, const sigset_t *signals, int64_t until)
{
    const struct timespec look = { 0, LOOK_EVERY };
    int number = 0;
    while (!number && !all_ended(h) && wb_clock_monotonic() < until) {
        number = sigtimedwait(signals, NULL, &look);
        if (number < 0)
            number = 0;
    }
    return number;
}

/* Whoever is still at work then is as if killed: nothing is lost, and it runs again. */
static void stop(const host *h, const sigset_t *signals)
{
    for (size_t i = 0; i < h->count; i++)
        wb_endpoint_stop(h->endpoints[i]);
    int again = wait_for_signal(h, signals, wb_clock_monotonic() + h->patience);
    if (all_ended(h))
        return;
    wb_log_event(WB_LOG_WARNING, "ends without finishing what is in flight",
                 { "reason", again ? "second signal" : "shutdown_timeout" });
    _exit(EX_TEMPFAIL);
}

static int finish(host *h, int code)
{
    wb_error error = { 0 };
    for (size_t i = 0; i < h->count && h->endpoints[i]; i++) {
        if (wb_endpoint_join(h->endpoints[i], &error) != WB_OK && code == EX_OK)
            code = report(h, i, &error);
        wb_endpoint_destroy(h->endpoints[i]);
    }
    free(h->endpoints);
    free(h->setups);
    return code;
}

static int run_host(host *h, const cli_values *values, const wb_setup *setup, const sigset_t *signals)
{
    int code = choose(h, setup, values->value['e']);
    if (code == EX_OK)
        code = prepare(h, values->value['i'] != NULL);
    if (code == EX_OK)
        code = start(h);
    if (code == EX_OK && wait_for_signal(h, signals, WB_NEVER))
        wb_log_write(WB_LOG_INFO, "stops: finishing what is in flight", NULL, 0);
    if (h->started)
        stop(h, signals);
    return finish(h, code);
}

/* A batch's buffers are of some 100 KB and come again with each batch: by default the C library
 * gives such memory back each time, and the kernel clears its pages anew. */
static void keep_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
}

static int run(const cli_values *values)
{
    host h = { 0 };
    wb_setup *setup = NULL;
    sigset_t signals;

    keep_memory();
    /* Blocked before any thread starts, so that only the main thread sees them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    int code = cli_load(values, 0, &setup);
    if (code != EX_OK)
        return code;
    code = run_host(&h, values, setup, &signals);
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_run = {
    .name = "run",
    .summary = "run the endpoints until SIGTERM or SIGINT",
    .help = "Finishes what is in flight when told to stop; a second signal, or shutdown_timeout, ends\n"
            "it at once (exit code 75). Endpoints wait for servers that go away while they run; one\n"
            "that is not there at the start is an error.",
    .options = options,
    .run = run,
};

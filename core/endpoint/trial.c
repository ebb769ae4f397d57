/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/trial.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"

struct wb_trial {
    wb_endpoint *endpoint; /* never started */
    int install;
    pthread_t thread;
    int result;
    wb_error error;
    atomic_int ended;
};

static void *trial_main(void *argument)
{
    wb_trial *trial = argument;
    int r = trial->install ? wb_endpoint_install(trial->endpoint, &trial->error) : WB_OK;
    if (r == WB_OK)
        r = wb_endpoint_verify(trial->endpoint, &trial->error);
    trial->result = r;
    atomic_store(&trial->ended, 1);
    return NULL;
}

static void discard(wb_trial *trial)
{
    wb_endpoint_destroy(trial->endpoint);
    free(trial);
}

int wb_trial_start(const wb_endpoint_setup *setup, int install, wb_trial **ret_trial, wb_error *error)
{
    wb_trial *trial = wb_alloc_zero(1, sizeof *trial);
    trial->install = install;
    int r = wb_endpoint_create(setup, &trial->endpoint, error);
    int code = r == WB_OK ? pthread_create(&trial->thread, NULL, trial_main, trial) : 0;
    if (code != 0)
        r = wb_error_set(error, WB_RETRY, WB_CAUSE_OTHER, code, "could not start a thread: %s",
                         strerror(code));
    if (r == WB_OK)
        *ret_trial = trial;
    else
        discard(trial);
    return r;
}

int wb_trial_has_ended(const wb_trial *trial)
{
    return atomic_load(&trial->ended);
}

int wb_trial_end(wb_trial *trial, wb_endpoint **ret_endpoint, wb_error *error)
{
    pthread_join(trial->thread, NULL);
    int r = trial->result;
    if (r != WB_OK) {
        *error = trial->error;
    } else if (ret_endpoint) {
        *ret_endpoint = trial->endpoint;
        trial->endpoint = NULL;
    }
    discard(trial);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * One endpoint of the host: a fate of its own.
 */
#ifndef WB_CLI_HOSTED_H
#define WB_CLI_HOSTED_H

#include "core/base/error.h"
#include "core/endpoint/endpoint.h"
#include "core/endpoint/restart.h"
#include "core/endpoint/trial.h"
#include "core/pipeline/tally.h"

/** While it waits for its servers to start (wait.h). */
typedef struct cli_wait {
    unsigned tries;     /* trials that failed */
    int64_t due;        /* when the next one begins */
    int64_t told_at;    /* when a line said that it waits; 0: none did */
    int64_t doubted_at; /* when it met first what waiting does not cure, after it had waited; 0: not */
    int has_servers;    /* they were there in the last trial: it waits for its modules to open */
    wb_error error;     /* what the last trial met */
} cli_wait;

typedef struct cli_hosted {
    const wb_endpoint_setup *setup;
    wb_endpoint *endpoint; /* NULL: not made yet */
    wb_endpoint *probe; /* never started; a drain has its instances ask the broker. NULL: not made yet */
    wb_restart restart;
    cli_wait wait;
    wb_trial *trial;   /* of whether it can start, or start again; NULL: none */
    int is_ended;      /* for good, told to stop by us; its neighbours go on */
    wb_error failure;  /* why it gave up; result is WB_OK while all is well */
    int64_t failed_at; /* when it did first, since all was well */
    int64_t deadline;  /* of its own shutdown_timeout */
    wb_counts told;    /* when the last minute was over that something happened in */
} cli_hosted;

#endif

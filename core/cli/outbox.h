/* SPDX-License-Identifier: Apache-2.0
 *
 * `waybill outbox`: what its deeds, one file each, share. The verb reads the command line and opens
 * the endpoint's tables (verb_outbox.c); a deed works on them and answers on stdout.
 */
#ifndef WB_CLI_OUTBOX_H
#define WB_CLI_OUTBOX_H

#include <jansson.h>

#include "core/base/error.h"
#include "core/cli/cli.h"
#include "core/endpoint/cleaner.h"
#include "core/endpoint/endpoint.h"

typedef struct cli_outbox {
    const wb_endpoint_setup *setup;
    wb_endpoint *endpoint;
    wb_pipeline *pipeline;
    const wb_persistence_ops *ops;
    wb_storage_session *session;
    wb_records store; /* its deduplication store; ops NULL: it has none */
    int64_t now; /* the database's */
    wb_error error;
    /* the command line */
    int is_json, is_exact, is_forced, is_dry, is_parked;
    int64_t older_than; /* ns; -1: not given */
    size_t limit;       /* 0: none */
    uint64_t after;     /* a batch number */
} cli_outbox;

/** The deeds. @return the exit code. */
int cli_outbox_stats(cli_outbox *o);
int cli_outbox_pending(cli_outbox *o);
int cli_outbox_sweep(cli_outbox *o);
int cli_outbox_cleanup(cli_outbox *o);

/** Say what o->error says, and whose endpoint it is. @return the exit code. */
int cli_outbox_fail(const cli_outbox *o);
/** Print a value and give it up. */
void cli_outbox_print_json(json_t *value);
/** A time as the log writes it, or null for a batch number of 0. */
json_t *cli_outbox_batch_json(uint64_t batch);

#endif

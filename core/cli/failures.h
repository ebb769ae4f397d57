/* SPDX-License-Identifier: Apache-2.0
 *
 * `waybill failures`: what its deeds share. The verb reads the command line and opens the endpoint's
 * tables (verb_failures.c); a deed works on them and answers on stdout.
 */
#ifndef WB_CLI_FAILURES_H
#define WB_CLI_FAILURES_H

#include <jansson.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/cli/cli.h"
#include "core/cli/failed.h"
#include "core/endpoint/endpoint.h"
#include "core/failures/retry.h"

/** The letter of --remove-header, which edit-retry reads by itself; its others are 'H' and 'f'. */
#define CLI_FAILURES_REMOVE_HEADER CLI_LONG_OPTION(14)

/** What meets another operator's transaction (a deadlock, a lock) is tried again, for so long, and so far apart. */
#define CLI_FAILURES_PATIENCE (10 * WB_SECOND)
#define CLI_FAILURES_PAUSE (20 * WB_MILLISECOND)

typedef struct cli_failures {
    const wb_endpoint_setup *setup;
    wb_endpoint *endpoint;
    wb_storage_session *session;
    const wb_failed_ops *ops;
    wb_error error;
    /* the command line */
    const cli_values *values;
    cli_failed_filter filter;
    int is_dry, is_body;
    const char *file; /* NULL, "-": the standard stream */
    /* what was found; it lives in the arena */
    wb_arena arena;
    cli_failed *found;
    size_t count, capacity;
    /* what is answered */
    int is_json;      /* an array */
    size_t shown;     /* elements of it */
    int code;         /* of what was shown: EX_OK, or EX_DATAERR if some of it cannot be read */
    json_t *outcomes; /* what became of each, told at the end: a reader that goes away stops nothing; or NULL */
} cli_failures;

/** The deeds. @return the exit code. */
int cli_failures_list(cli_failures *f);
int cli_failures_group(cli_failures *f);
int cli_failures_show(cli_failures *f);
int cli_failures_retry(cli_failures *f);
int cli_failures_edit_retry(cli_failures *f);
int cli_failures_archive(cli_failures *f);
int cli_failures_discard(cli_failures *f);
int cli_failures_export(cli_failures *f);
int cli_failures_import(cli_failures *f);

/** Say what f->error says, and whose endpoint it is. @return the exit code. */
int cli_failures_fail(const cli_failures *f);

typedef void cli_failures_take(void *argument, const wb_failed *failed, const wb_failed_record *record);
/** Hand what is wanted to `take`, in the order in which it failed, and say how many nobody here can read. @return the exit code. */
int cli_failures_visit(cli_failures *f, cli_failures_take *take, void *argument);
/** Keep in f->found what is wanted. @return the exit code; EX_NOINPUT: there is nothing. */
int cli_failures_find(cli_failures *f);

/** Tell what became of one. */
void cli_failures_tell(cli_failures *f, const cli_failed *one, const char *outcome);
/** The same, where `was` is whether it was changed. @return whether it was left alone. */
int cli_failures_tell_change(cli_failures *f, const cli_failed *one, int was, const char *outcome);
/** Tell that it cannot be read, and is left alone; and why, on standard error. @return 1. */
int cli_failures_tell_unread(cli_failures *f, const cli_failed *one, int why);
/** Tell of all that were found what would become of them. @return EX_OK. */
int cli_failures_would(cli_failures *f, const char *outcome);
/** The end, of which so many were left alone. @return the exit code. */
int cli_failures_finish(const cli_failures *f, size_t left);

#endif

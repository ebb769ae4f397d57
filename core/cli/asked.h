/* SPDX-License-Identifier: Apache-2.0
 *
 * What the console's desk is asked for: failed messages, delayed ones, pending rows, read as the verbs read them, and with
 * their code. Each question opens a session of its own and closes it: a server that went away meanwhile is nobody's trouble, and none
 * is kept busy by a page that somebody left open.
 *
 * Threads: made and freed on the main thread; the desk's uses it between.
 */
#ifndef WB_CLI_ASKED_H
#define WB_CLI_ASKED_H

#include "core/cli/hosted.h"
#include "core/console/desk.h"
#include "core/failures/retry.h"

/** So many are shown at a time, unless a number is given, and at most. */
#define CLI_ASKED_LIMIT 50
#define CLI_ASKED_LIMIT_MAX 500

/** So many bytes of a body are edited, if the endpoint's body_max is not smaller; and so many are sent for it, as JSON, with headers. */
#define CLI_ASKED_BODY_MAX (1024 * 1024)
#define CLI_ASKED_EDIT_MAX (4 * 1024 * 1024)

typedef struct cli_asked cli_asked;

/** Instances of those endpoints that have a persistence, which connect to nothing. */
cli_asked *cli_asked_make(const cli_hosted *hosted, size_t count);
/** NULL is allowed. */
void cli_asked_free(cli_asked *asked);
/** What can be asked for; it is the owner. */
wb_deeds cli_asked_deeds(cli_asked *asked);

/* ---- for the deeds, one file a kind ---- */

/** What a deed works on. */
typedef struct cli_asked_tables {
    const wb_endpoint_setup *setup;
    wb_endpoint *endpoint;
    wb_storage_session *session;
    wb_error error;
} cli_asked_tables;

/** The endpoint that is given by its name; where none is, the first that `suits`. NULL: there is none, and the answer says so. */
const wb_endpoint_setup *cli_asked_choose(const cli_asked *asked, const json_t *given, int (*suits)(const wb_endpoint_setup *setup),
                                          const char *what, wb_answer *answer);
/** Its tables. @return 0: they cannot be had, and the answer says why. */
int cli_asked_open(cli_asked *asked, const wb_endpoint_setup *setup, cli_asked_tables *ret_tables, wb_answer *answer);
void cli_asked_close(cli_asked_tables *tables);
/** Say what tables->error says. */
void cli_asked_fail(const cli_asked_tables *tables, wb_answer *answer);

/** Send those failed messages back that wait, lot by lot; their order may change. Of the first *ret_count it is known what became of them.
 *  @return WB_OK; or the class of what failed, and the tables' error says why. */
int cli_asked_send_back(cli_asked_tables *tables, wb_failed_retry *which, size_t count, size_t *ret_count);

/** What is given; NULL: it is not, or empty. */
const char *cli_asked_text(const json_t *given, const char *name);
size_t cli_asked_number(const json_t *given, const char *name, size_t otherwise, size_t most);
/** An array of at most `limit`, and whether there are more, as an answer. Both are given up. */
void cli_asked_answer(wb_answer *answer, const wb_endpoint_setup *setup, const char *name, json_t *array, int has_more);

/** Whether an endpoint has these tables. */
int cli_keeps_failures(const wb_endpoint_setup *setup);
int cli_keeps_delayed(const wb_endpoint_setup *setup);
int cli_keeps_pending(const wb_endpoint_setup *setup);

void cli_asked_failures(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_groups(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_failure(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_body(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_editable(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_delayed(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_delayed_one(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_to_retry(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_to_archive(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_to_edit(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_to_cancel(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_to_reschedule(void *owner, const json_t *given, wb_answer *answer);
void cli_asked_pending(void *owner, const json_t *given, wb_answer *answer);

#endif

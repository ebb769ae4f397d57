/* SPDX-License-Identifier: Apache-2.0
 *
 * waybill run --drain: the endpoints run until there has been nothing to do for a while, in all of them at once, for
 * what one sends may be another's: no worker has a message in hand or receives one, no operation is pending, no
 * message waits in a store, in the table of what programs write in SQL, or in a queue for others to receive it. Subscriptions
 * stay as they are, so what others publish is handled, too.
 *
 * Main thread only.
 */
#ifndef WB_CLI_DRAIN_H
#define WB_CLI_DRAIN_H

#include "core/cli/hosted.h"
#include "core/cli/question.h"

/** How long it must have stayed empty, unless told. */
#define CLI_DRAIN_IDLE (5 * WB_SECOND)

typedef struct cli_drain {
    int64_t idle;     /* ns: how long all must have stayed empty; 0: the program does not drain */
    int64_t patience; /* ns: the time limit; 0: none */
    int64_t ends;     /* when it is over (monotonic) */
    int64_t full;     /* when something was last seen to be left in a table */
    int64_t asked;    /* when tables and queues were looked at last */
    int64_t told;     /* when a line last said that something is left; 0: none did */
    int is_decided;   /* look() has said how it ends */
    int is_last;      /* the question is the last one, of who was told to stop */
    cli_question *question; /* what its thread is at; NULL: none */
    char left[700];   /* what was, in words; "": nothing */
} cli_drain;

/** All that is to run has started, or waits for its servers. */
void cli_drain_begin(cli_drain *drain, int64_t now);
/** Look, some ten times a second; has servers asked at most once a second, and waits for none. Makes the probes.
 *  @return -1 to go on, else the exit code: EX_OK when all is done, EX_TEMPFAIL with a message when the time is over. */
int cli_drain_look(cli_drain *drain, cli_hosted *hosted, size_t count, int64_t now);
/** Told to stop before look() had decided, and nobody is at work any longer: asks once more. Call it until it knows.
 *  @return -1 while servers are asked, unless `is_over`; EX_OK where nothing is left, or it does not drain; EX_TEMPFAIL
 *  with a message. */
int cli_drain_stopped(cli_drain *drain, cli_hosted *hosted, size_t count, int is_over);
/** Free the question. @return 0: a server is still asked; its thread uses an endpoint, which must stay as long. */
int cli_drain_end(cli_drain *drain);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left in the tables and queues of endpoints, asked on a thread of its own: while a server does not answer, the main
 * thread feeds the watchdog, minds handlers' time limits and answers signals.
 *
 * Main thread only.
 */
#ifndef WB_CLI_QUESTION_H
#define WB_CLI_QUESTION_H

#include "core/cli/hosted.h"

typedef struct cli_question cli_question;

/** Ask those of `hosted` that take_part; each has a probe. They, and their setups, stay until the question was taken.
 *  @return NULL: there is no thread to be had. */
cli_question *cli_question_ask(const cli_hosted *hosted, size_t count, int (*takes_part)(const cli_hosted *one));
/** Whether it is; else `waits_for` gets who does not answer, in words. */
int cli_question_is_answered(const cli_question *question, char *waits_for, size_t size);
/** Join the thread, which has answered, and free the question. `left` gets what is left, in words, or why that is not known.
 *  @return whether nothing is. */
int cli_question_take(cli_question *question, char *left, size_t size);

#endif

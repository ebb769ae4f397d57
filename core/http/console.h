/* SPDX-License-Identifier: Apache-2.0
 *
 * What the console answers, and whom: its files, and below /api/ what they show, as JSON.
 *
 *   GET /api/session               whether who asks is signed in, and what he may do; POST: sign in; DELETE: sign out
 *   GET /api/status                as /status
 *   GET /api/events                the same once a second, as server-sent events
 *   GET /api/history               the last hour (core/console/history.h)
 *   GET /api/plan                  what each endpoint does, as negotiated
 *   GET what else the desk can do  (core/console/desk.h); POST, an object of JSON: what of that changes something
 *
 * Where there is a token, who asks sends it as everywhere, or signs in with it once, and has a cookie then. The files
 * are for everybody: nothing is in them.
 */
#ifndef WB_HTTP_CONSOLE_H
#define WB_HTTP_CONSOLE_H

#include "core/http/answers.h"

/** What is sent to have something changed, in bytes; who may change it sends more where that takes more (wb_deed.sent_max). */
#define WB_HTTP_BODY_MAX 65536

/** Whether the path is the console's. */
int wb_console_has(const wb_console *console, const char *path);
/** How many bytes of what comes behind the headers are to be read: JSON, as question->given. 0: it is of no use. */
size_t wb_console_body_max(wb_console *console, const wb_question *question);
void wb_console_answer(wb_console *console, const wb_question *question, wb_board *board, wb_answer *answer);

#endif

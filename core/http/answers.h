/* SPDX-License-Identifier: Apache-2.0
 *
 * What is answered to whom: from a request's few parts that matter to a status and a text. Knows no socket and no library.
 */
#ifndef WB_HTTP_ANSWERS_H
#define WB_HTTP_ANSWERS_H

#include "core/console/answer.h"
#include "core/console/console.h"
#include "core/metrics/board.h"

/** A request. Strings of others; NULL: it has no such header. */
typedef struct wb_question {
    const char *method;
    const char *path; /* without what is behind a question mark */
    const char *host;
    const char *authorization;
    const char *token; /* that who asks has to know; NULL: nobody has to */
    /* for the console */
    const char *cookie;       /* the value of ours */
    const char *origin, *site; /* Origin, Sec-Fetch-Site */
    const char *page_token;   /* X-Waybill-Token: the second secret of a session */
    const char *address;      /* who asks from where, for the log */
    int is_tls;
    const json_t *given; /* what is behind the question mark, strings by their names; or what was sent. NULL: nothing */
    size_t exceeded;     /* what was sent has more bytes than these, and was not kept; 0: it has not */
    int64_t now;         /* monotonic */
} wb_question;

/** `console`: NULL, there is none. */
void wb_answer_make(const wb_question *question, wb_board *board, wb_console *console, wb_answer *ret_answer);
/** Whether who asks says the token, or there is none. */
int wb_question_knows_token(const wb_question *question);

#endif

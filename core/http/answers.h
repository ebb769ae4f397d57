/* SPDX-License-Identifier: Apache-2.0
 *
 * What is answered to whom: from a request's few parts that matter to a status and a text. Knows no socket and no library.
 */
#ifndef WB_HTTP_ANSWERS_H
#define WB_HTTP_ANSWERS_H

#include "core/base/buffer.h"
#include "core/metrics/board.h"

/** A request. Strings of others; NULL: it has no such header. */
typedef struct wb_question {
    const char *method;
    const char *path; /* without what is behind a question mark */
    const char *host;
    const char *authorization;
    const char *token; /* that who asks has to know; NULL: nobody has to */
} wb_question;

typedef struct wb_answer {
    unsigned status;
    const char *type; /* of its text */
    wb_buffer text;   /* the caller's */
} wb_answer;

void wb_answer_make(const wb_question *question, wb_board *board, wb_answer *ret_answer);

#endif

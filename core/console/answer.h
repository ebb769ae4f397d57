/* SPDX-License-Identifier: Apache-2.0
 *
 * An answer to somebody who asks by HTTP: a status and a text.
 */
#ifndef WB_CONSOLE_ANSWER_H
#define WB_CONSOLE_ANSWER_H

#include <jansson.h>

#include "core/base/buffer.h"

#define WB_ANSWER_PLAIN "text/plain; charset=utf-8"
#define WB_ANSWER_JSON "application/json"

/** All zero is the beginning. */
typedef struct wb_answer {
    unsigned status;
    const char *type;     /* of its text, a constant */
    wb_buffer text;       /* the caller's, unless `lasting` is */
    const void *lasting;  /* a text that stays, of `lasting_size` bytes, in place of `text`; NULL: it is none */
    size_t lasting_size;
    int is_page;          /* a browser shows it, or takes it for a part of what it shows */
    int is_file;          /* a browser keeps it, and shows nothing */
    const char *cookie;   /* NULL: none is set; "": it is taken back */
    struct wb_errand *errand; /* to be given to the desk, whose answer is the answer (desk.h); NULL: this is it */
    int is_stream;        /* events, from now on */
} wb_answer;

/** A line of text; an error, mostly. */
void wb_answer_say(wb_answer *answer, unsigned status, const char *text);
/** The value, which is given up; out of memory is an error, too. */
void wb_answer_json(wb_answer *answer, unsigned status, json_t *value);
/** {"error": TEXT} */
void wb_answer_refuse(wb_answer *answer, unsigned status, const char *text);
void wb_answer_free(wb_answer *answer);

#endif

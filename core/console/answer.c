/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/console/answer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/json_text.h"

void wb_answer_say(wb_answer *answer, unsigned status, const char *text)
{
    answer->status = status;
    answer->type = WB_ANSWER_PLAIN;
    wb_buffer_put(&answer->text, text, strlen(text));
    wb_buffer_put(&answer->text, "\n", 1);
}

void wb_answer_json(wb_answer *answer, unsigned status, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    wb_answer_say(answer, text ? status : 500, text ? text : "{\"error\":\"out of memory\"}");
    answer->type = WB_ANSWER_JSON;
    free(text);
    json_decref(value);
}

void wb_answer_refuse(wb_answer *answer, unsigned status, const char *text)
{
    wb_answer_json(answer, status, json_pack("{s:o}", "error", wb_json_text(text)));
}

void wb_answer_free(wb_answer *answer)
{
    wb_buffer_free(&answer->text);
    *answer = (wb_answer){ 0 };
}

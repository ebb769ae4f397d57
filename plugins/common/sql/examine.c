/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/examine.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/finding.h"
#include "plugins/common/sql/schema.h"

#define SESSIONS "{sessions}"
#define CELLS 4

/* In memory of malloc(), or NULL. */
static char *put_numbers(const char *question, const wb_examination *examination)
{
    wb_sql_buffer text = { 0 };
    const char *at;
    while ((at = strstr(question, SESSIONS))) {
        wb_sql_buffer_put(&text, question, (size_t)(at - question));
        wb_sql_buffer_put_number(&text, examination->sessions);
        question = at + sizeof SESSIONS - 1;
    }
    wb_sql_buffer_put(&text, question, strlen(question) + 1);
    if (!text.failed)
        return text.data;
    wb_sql_buffer_free(&text);
    return NULL;
}

/* Severity, name, text, remedy. */
static void tell(const wb_sql_cell *cells, const wb_examination *examination)
{
    if (cells[0].data && cells[1].data && cells[2].data)
        wb_common_find(examination, atoi(cells[0].data), cells[1].data, cells[3].data, "%s", cells[2].data);
}

/* @return WB_NOT_CONNECTED, or WB_OK. */
static int ask(wb_storage_session *session, const char *question, const wb_examination *examination)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_answer rows = { 0 };
    wb_sql_cell cells[CELLS];
    char *text = put_numbers(question, examination);
    int result = text ? wb_sql_schema_run(session, text, &rows) : WB_OK;
    while (result == WB_OK && text && driver->fetch(&rows, cells, CELLS))
        tell(cells, examination);
    driver->clear(&rows);
    free(text);
    return result == WB_NOT_CONNECTED ? result : WB_OK;
}

int wb_sql_examine(wb_persistence *persistence, const wb_examination *examination, wb_error *error)
{
    const wb_sql_outbox *outbox = (const wb_sql_outbox *)(void *)persistence;
    wb_storage_session *session = NULL;
    int result = outbox->driver->connect(persistence, &session, error);

    if (result != WB_OK)
        return result;
    for (const char *const *question = outbox->dialect->questions; question && *question && result == WB_OK; question++)
        result = ask(session, *question, examination);
    if (result != WB_OK)
        result = wb_sql_report(session, "look at the server", error);
    outbox->driver->close(session);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/sqlite/savepoints.h"

#include <string.h>
#include <strings.h>

/* Where nobody says whose they are: a batch stays on one thread from join() to its end. */
static _Thread_local wb_sqlite_savepoints of_thread;

static wb_sqlite_savepoints *resolve(wb_sqlite_savepoints *of)
{
    return of ? of : &of_thread;
}

static const char *skip_comments(const char *sql)
{
    for (;;) {
        sql += strspn(sql, " \t\r\n\f;");
        if (strncmp(sql, "--", 2) == 0)
            sql += strcspn(sql, "\n");
        else if (strncmp(sql, "/*", 2) == 0 && strstr(sql + 2, "*/"))
            sql = strstr(sql + 2, "*/") + 2;
        else
            return sql;
    }
}

static int is_word(const char *sql, const char *word)
{
    return strncasecmp(sql, word, strlen(word)) == 0;
}

static int on_statement(unsigned kind, void *context, void *statement, void *text)
{
    wb_sqlite_savepoints *of = resolve(context);
    (void)kind, (void)statement;
    if (!of->is_handed)
        return 0;
    const char *sql = skip_comments(text);
    if (is_word(sql, "savepoint"))
        of->count++;
    else if (is_word(sql, "release") && of->count)
        of->count--;
    else if (is_word(sql, "rollback") && of->inherited && of->count <= of->inherited) /* it has none of its own */
        of->went_back = 1;
    return 0;
}

void wb_sqlite_savepoints_begin(wb_sqlite_savepoints *of, sqlite3 *handle)
{
    *resolve(of) = (wb_sqlite_savepoints){ 0 };
    (void)sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, on_statement, of);
}

void wb_sqlite_savepoints_hand_out(wb_sqlite_savepoints *of, size_t item)
{
    of = resolve(of);
    of->is_handed = 1;
    if (!of->has_item || of->item != item)
        of->inherited = of->count;
    of->has_item = 1;
    of->item = item;
}

int wb_sqlite_savepoints_went_back(wb_sqlite_savepoints *of)
{
    of = resolve(of);
    of->is_handed = 0;
    return of->went_back;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/sqlite/heard.h"

#include <string.h>

/* Where nobody says whose they are: a batch stays on one thread from join() to its end. */
static _Thread_local wb_sqlite_heard of_thread;

static wb_sqlite_heard *resolve(wb_sqlite_heard *of)
{
    return of ? of : &of_thread;
}

static int is_of_the_file(const char *sql)
{
    return sqlite3_strlike("pragma%locking_mode%", sql, 0) == 0 || sqlite3_strlike("pragma%max_page_count%", sql, 0) == 0;
}

static int on_statement(unsigned kind, void *context, void *statement, void *text)
{
    wb_sqlite_heard *of = resolve(context);
    (void)kind, (void)statement;
    if (!of->is_handed)
        return 0;
    const size_t size = strlen(text);
    wb_common_savepoints_hear(&of->savepoints, text, size);
    of->has_pragma |= is_of_the_file(wb_common_sql_skip(text, (const char *)text + size));
    return 0;
}

void wb_sqlite_heard_begin(wb_sqlite_heard *of, sqlite3 *handle)
{
    *resolve(of) = (wb_sqlite_heard){ 0 };
    (void)sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, on_statement, of);
}

void wb_sqlite_heard_hand_out(wb_sqlite_heard *of, size_t item)
{
    of = resolve(of);
    of->is_handed = 1;
    wb_common_savepoints_hand_out(&of->savepoints, item);
}

int wb_sqlite_heard_went_back(wb_sqlite_heard *of)
{
    of = resolve(of);
    of->is_handed = 0;
    return of->savepoints.went_back;
}

int wb_sqlite_heard_had_pragma(wb_sqlite_heard *of)
{
    of = resolve(of);
    const int had = of->has_pragma;
    of->has_pragma = 0;
    return had;
}

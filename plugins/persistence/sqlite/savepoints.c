/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/sqlite/savepoints.h"

#include <string.h>

/* Where nobody says whose they are: a batch stays on one thread from join() to its end. */
static _Thread_local wb_sqlite_savepoints of_thread;

static wb_sqlite_savepoints *resolve(wb_sqlite_savepoints *of)
{
    return of ? of : &of_thread;
}

static int on_statement(unsigned kind, void *context, void *statement, void *text)
{
    wb_sqlite_savepoints *of = resolve(context);
    (void)kind, (void)statement;
    if (of->is_handed)
        wb_common_savepoints_hear(&of->seen, text, strlen(text));
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
    wb_common_savepoints_hand_out(&of->seen, item);
}

int wb_sqlite_savepoints_went_back(wb_sqlite_savepoints *of)
{
    of = resolve(of);
    of->is_handed = 0;
    return of->seen.went_back;
}

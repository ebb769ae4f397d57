/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server says by itself about the transaction, with each answer: whether one is open
 * (a flag of every answer) and how it stands (session_track_transaction_info). So it is seen
 * when a handler ends the transaction, even if it begins another one at once, and when the
 * server has rolled it back and the handler went on. And which session variables were changed,
 * and whether the database in use was (session_track_system_variables).
 */
#ifndef MYSQL_WATCH_H
#define MYSQL_WATCH_H

#include <mysql.h>

#include "plugins/common/sql/buffer.h"

typedef struct mys_watch {
    int written; /* the transaction has written */
    int ended;   /* no transaction was open, or one that was begun anew */
    int another; /* one is that nobody has begun: the server rolled back and went on */

    int collects;          /* what changes is a handler's doing */
    wb_sql_buffer changed; /* names of session variables, each with its NUL; not of those below */
    int own_changed;       /* one of those that a session of ours sets, and must not reset */
    int database_changed;
} mys_watch;

/** Call before connecting. `watch` outlives the connection. */
void mys_watch_connection(mys_watch *watch, MYSQL *connection);
/** The framework's transaction begins, or a handler gets the connection: forget what was
 *  seen, except for `written` if `keep_written`. */
void mys_watch_reset(mys_watch *watch, int keep_written);
void mys_watch_free(mys_watch *watch);

int mys_watch_saw_change(const mys_watch *watch);
void mys_watch_forget_changes(mys_watch *watch);

#endif

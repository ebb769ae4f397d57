/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server says by itself about the transaction, with each answer: whether one is open
 * (a flag of every answer) and how it stands (session_track_transaction_info). So it is seen
 * when a handler ends the transaction, even if it begins another one at once, and when the
 * server has rolled it back and the handler went on.
 */
#ifndef MYSQL_WATCH_H
#define MYSQL_WATCH_H

#include <mysql.h>

typedef struct mys_watch {
    int written; /* the transaction has written */
    int ended;   /* no transaction was open, or one that was begun anew */
    int another; /* one is that nobody has begun: the server rolled back and went on */
} mys_watch;

/** Call before connecting. `watch` outlives the connection. */
void mys_watch_connection(mys_watch *watch, MYSQL *connection);
/** The framework's transaction begins, or a handler gets the connection: forget what was
 *  seen, except for `written` if `keep_written`. */
void mys_watch_reset(mys_watch *watch, int keep_written);

#endif

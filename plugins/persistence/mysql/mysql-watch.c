/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-watch.h"

#include <stdarg.h>

/* Places in the state, "T___W___" for instance: explicit transaction that has written. */
#define STATE_KIND 0
#define STATE_WRITTEN 4
#define STATE_SIZE 8

static void take_state(mys_watch *w, const MARIADB_CONST_STRING *state)
{
    if (state->length < STATE_SIZE)
        return;
    const int written = state->str[STATE_WRITTEN] == 'W';
    /* ours was begun explicitly, and does not unwrite what it wrote */
    if (state->str[STATE_KIND] == 'I')
        w->another = 1;
    else if (w->written && !written)
        w->ended = 1;
    w->written |= written;
}

static void take_status(void *argument, enum enum_mariadb_status_info type, ...)
{
    mys_watch *w = argument;
    va_list arguments;

    va_start(arguments, type);
    if (type == STATUS_TYPE) {
        if (!(va_arg(arguments, unsigned) & SERVER_STATUS_IN_TRANS))
            w->ended = 1;
    } else if (va_arg(arguments, int) == SESSION_TRACK_TRANSACTION_STATE) {
        take_state(w, va_arg(arguments, const MARIADB_CONST_STRING *));
    }
    va_end(arguments);
}

void mys_watch_connection(mys_watch *watch, MYSQL *connection)
{
    (void)mysql_optionsv(connection, MARIADB_OPT_STATUS_CALLBACK, take_status, watch);
}

void mys_watch_reset(mys_watch *watch, int keep_written)
{
    watch->ended = watch->another = 0;
    if (!keep_written)
        watch->written = 0;
}

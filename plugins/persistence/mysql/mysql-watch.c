/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-watch.h"

#include <stdarg.h>
#include <string.h>

/* Places in the state, "T___W___" for instance: explicit transaction that has written. */
#define STATE_KIND 0
#define STATE_WRITTEN 4
#define STATE_LOCKED 7 /* by LOCK TABLES, which commits */
#define STATE_SIZE 8

static void take_state(mys_watch *w, const MARIADB_CONST_STRING *state)
{
    if (state->length < STATE_SIZE)
        return;
    const int written = state->str[STATE_WRITTEN] == 'W';
    /* ours was begun explicitly, and does not unwrite what it wrote */
    if (state->str[STATE_LOCKED] == 'L')
        w->ended = 1;
    else if (state->str[STATE_KIND] == 'I')
        w->another = 1;
    else if (w->written && !written)
        w->ended = 1;
    w->written |= written;
}

/* ---- variables ------------------------------------------------------------------ */

static int is_one_of(const char *const *names, const MARIADB_CONST_STRING *name)
{
    for (; *names; names++)
        if (strlen(*names) == name->length && memcmp(*names, name->str, name->length) == 0)
            return 1;
    return 0;
}

/* SET NAMES has these. */
static const char *const of_names[] = { "character_set_client", "character_set_connection",
                                        "character_set_results", "collation_connection", NULL };
/* For the next statement only, or nothing that could be set back. */
static const char *const passing[] = { "identity", "last_insert_id", "pseudo_thread_id",
                                       "rand_seed1", "rand_seed2", NULL };
/* The default of the first would commit; those of the others would hide what we look for. */
static const char *const own[] = { "autocommit", "session_track_system_variables",
                                   "session_track_transaction_info", NULL };

static int is_known(const wb_sql_buffer *names, const MARIADB_CONST_STRING *name)
{
    for (size_t at = 0; at < names->size; at += strlen(names->data + at) + 1)
        if (strlen(names->data + at) == name->length &&
            memcmp(names->data + at, name->str, name->length) == 0)
            return 1;
    return 0;
}

static int is_plain_name(const MARIADB_CONST_STRING *name)
{
    for (size_t i = 0; i < name->length; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", name->str[i]) || !name->str[i])
            return 0;
    return name->length > 0;
}

static void take_variable(mys_watch *w, const MARIADB_CONST_STRING *name)
{
    static const char *const schema[] = { "session_track_schema", NULL };
    if (w->collects) /* what is done behind it may not be reported */
        w->database_changed |= is_one_of(schema, name);
    if (!w->collects || is_one_of(of_names, name) || is_one_of(passing, name))
        return;
    if (is_one_of(own, name)) {
        w->own_changed = 1;
    } else if (is_plain_name(name) && !is_known(&w->changed, name)) {
        wb_sql_buffer_put(&w->changed, name->str, name->length);
        wb_sql_buffer_put(&w->changed, "", 1);
    }
}

int mys_watch_saw_change(const mys_watch *watch)
{
    return watch->changed.size || watch->own_changed || watch->database_changed;
}

void mys_watch_forget_changes(mys_watch *watch)
{
    wb_sql_buffer_reset(&watch->changed);
    watch->own_changed = watch->database_changed = 0;
}

void mys_watch_free(mys_watch *watch)
{
    wb_sql_buffer_free(&watch->changed);
}

/* ---- what comes ------------------------------------------------------------------- */

static void take_change(mys_watch *w, int what, const MARIADB_CONST_STRING *value)
{
    if (what == SESSION_TRACK_TRANSACTION_STATE)
        take_state(w, value);
    else if (what == SESSION_TRACK_SYSTEM_VARIABLES)
        take_variable(w, value);
    else if (what == SESSION_TRACK_SCHEMA)
        w->database_changed |= w->collects;
}

static void take_status(void *argument, enum enum_mariadb_status_info type, ...)
{
    mys_watch *w = argument;
    va_list arguments;

    va_start(arguments, type);
    if (type == STATUS_TYPE) {
        if (!(va_arg(arguments, unsigned) & SERVER_STATUS_IN_TRANS))
            w->ended = 1;
    } else {
        const int what = va_arg(arguments, int);
        take_change(w, what, va_arg(arguments, const MARIADB_CONST_STRING *));
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

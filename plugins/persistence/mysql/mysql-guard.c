/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugins/persistence/mysql/mysql-session.h"

#define SAVEPOINT "waybill_batch"
#define ROLES_SINCE 80000 /* MySQL's version */

static int is_mariadb(MYSQL *c)
{
    return mariadb_connection(c) != 0;
}

const char *mys_guard_role_column(MYSQL *c)
{
    return is_mariadb(c) || mysql_get_server_version(c) >= ROLES_SINCE ? "CURRENT_ROLE()" : "''";
}

static void put_identifier(wb_sql_buffer *text, const char *name, size_t size)
{
    wb_sql_buffer_put(text, "`", 1);
    for (size_t i = 0; i < size; i++)
        wb_sql_buffer_put(text, name[i] == '`' ? "``" : name + i, name[i] == '`' ? 2 : 1);
    wb_sql_buffer_put(text, "`", 1);
}

/* MariaDB has one, and yields its name or NULL; MySQL has several, and yields what SET ROLE
 * takes. */
static void write_role(wb_storage_session *s, const wb_sql_cell *role)
{
    mys_guard *g = &s->guard;
    if (role->data && !role->size)
        return;
    wb_sql_buffer_put_text(&g->role, "SET ROLE ");
    g->takes_more = is_mariadb(s->connection);
    if (!role->data)
        wb_sql_buffer_put_text(&g->role, "NONE");
    else if (g->takes_more)
        put_identifier(&g->role, role->data, role->size);
    else
        wb_sql_buffer_put(&g->role, role->data, role->size);
}

int mys_guard_init(wb_storage_session *s, const wb_sql_cell *collation, const wb_sql_cell *role)
{
    mys_guard *g = &s->guard;
    g->charset = s->connection->charset;
    (void)snprintf(g->names, sizeof g->names, "SET NAMES utf8mb4 COLLATE %.*s",
                   (int)collation->size, collation->data);
    write_role(s, role);
    return g->role.failed ? -1 : 0;
}

void mys_guard_free(mys_guard *guard)
{
    if (guard->sentinel)
        (void)mysql_stmt_close(guard->sentinel);
    wb_sql_buffer_free(&guard->role);
}

/* ---- queueing ------------------------------------------------------------------ */

void mys_guard_queue_names(wb_storage_session *s)
{
    if (s->guard.needs_names)
        mys_queue_kind(s, MYS_STEP_NAMES, s->guard.names);
}

void mys_guard_queue_savepoint(wb_storage_session *s)
{
    s->guard.has_savepoint = 1;
    mys_queue_text(s, "SAVEPOINT " SAVEPOINT, NULL);
}

void mys_guard_queue_release(wb_storage_session *s)
{
    if (s->guard.users)
        mys_queue_kind(s, MYS_STEP_GUARD, "RELEASE SAVEPOINT " SAVEPOINT);
}

static void end_step(wb_storage_session *s)
{
    mys_queue_kind(s, MYS_STEP_REST, "");
}

/* MariaDB 11.8 does not report a storage engine's variables, and after one was set it may not
 * report the next change of another (timestamp was seen). So they are set only where they differ. */
static void queue_untracked(wb_storage_session *s)
{
    char text[640];
    const int64_t wait = mys_session_row_lock_wait(s);
    if (!s->guard.needs_rest || !is_mariadb(s->connection))
        return;
    (void)snprintf(text, sizeof text,
                   "IF @@session.innodb_lock_wait_timeout <> %" PRId64
                   " OR @@session.innodb_strict_mode <> @@global.innodb_strict_mode"
                   " OR @@session.innodb_table_locks <> @@global.innodb_table_locks"
                   " THEN SET @@session.innodb_lock_wait_timeout = %" PRId64
                   ", @@session.innodb_strict_mode = DEFAULT, @@session.innodb_table_locks = DEFAULT"
                   ", @@session.timestamp = DEFAULT; END IF",
                   wait, wait);
    wb_sql_buffer_put_text(&s->exchange.text, text);
    end_step(s);
}

/* The role, and in MariaDB with it the variables. */
static void queue_set(wb_storage_session *s)
{
    const mys_guard *g = &s->guard;
    const mys_watch *w = &s->watch;
    wb_sql_buffer *text = &s->exchange.text;
    int is_begun = g->role.size && g->takes_more;

    wb_sql_buffer_put(text, g->role.data, g->role.size);
    if (g->role.size && !g->takes_more)
        end_step(s);
    for (size_t at = 0; at < w->changed.size; at += strlen(w->changed.data + at) + 1) {
        wb_sql_buffer_put_text(text, is_begun ? ", @@session." : "SET @@session.");
        wb_sql_buffer_put_text(text, w->changed.data + at);
        wb_sql_buffer_put_text(text, " = DEFAULT");
        is_begun = 1;
    }
    if (is_begun)
        end_step(s);
}

static int is_elsewhere(const wb_storage_session *s)
{
    const char *database = s->connection->db;
    return s->watch.database_changed || !database ||
           strcmp(database, s->persistence->config->database) != 0;
}

static void queue_database(wb_storage_session *s)
{
    const char *database = s->persistence->config->database;
    wb_sql_buffer_put_text(&s->exchange.text, "USE ");
    put_identifier(&s->exchange.text, database, strlen(database));
    end_step(s);
}

/* What the session has of its own is set again behind the defaults. */
void mys_guard_queue_rest(wb_storage_session *s)
{
    const mys_watch *w = &s->watch;
    const size_t first = s->exchange.count;

    if (!s->guard.needs_rest && !mys_watch_saw_change(w))
        return;
    queue_set(s);
    if (w->changed.size || w->own_changed)
        mys_session_queue_settings(s);
    if (is_elsewhere(s))
        queue_database(s);
    queue_untracked(s);
    if (s->exchange.count > first)
        s->exchange.steps[s->exchange.count - 1].kind = MYS_STEP_LAST_OF_REST;
}

void mys_guard_take(wb_storage_session *s, mys_step_kind kind)
{
    mys_guard *g = &s->guard;
    if (kind == MYS_STEP_NAMES) {
        s->connection->charset = g->charset;
        g->needs_names = 0;
    } else if (kind == MYS_STEP_LAST_OF_REST) {
        mys_watch_forget_changes(&s->watch);
        g->needs_rest = 0;
    }
}

/* ---- what was seen --------------------------------------------------------------- */

void mys_guard_hand_out(wb_storage_session *s, size_t item)
{
    mys_guard *g = &s->guard;
    if (!g->sentinel)
        g->sentinel = mysql_stmt_init(s->connection);
    if (!g->users)
        g->user = item;
    if (!g->users || s->sql.last_item != item)
        g->users++;
    g->is_used = g->needs_names = g->needs_rest = 1;
    mys_savepoints_listen(&g->savepoints, s->connection, item);
}

int mys_guard_was_reset(const mys_guard *guard)
{
    return guard->sentinel && mysql_stmt_errno(guard->sentinel) != 0;
}

/* The statement's error names the function. */
static int was_closed(const mys_guard *guard)
{
    return mys_guard_was_reset(guard) && strstr(mysql_stmt_error(guard->sentinel), "mysql_close");
}

int mys_guard_take_back(wb_storage_session *s)
{
    if (s->connection && was_closed(&s->guard))
        s->connection = NULL;
    if (s->connection)
        mys_savepoints_ignore(&s->guard.savepoints, s->connection);
    return s->connection == NULL;
}

int mys_guard_found(wb_storage_session *s)
{
    const mys_guard *g = &s->guard;
    return wb_sql_note(s, WB_REJECT, WB_CAUSE_OTHER, g->users == 1 ? g->user : WB_SQL_NO_ITEM,
                       MYS_ENDED);
}

void mys_guard_forget(mys_guard *guard)
{
    guard->has_savepoint = 0;
    guard->users = 0;
    mys_savepoints_forget(&guard->savepoints);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-guard.h"

#include <stdio.h>
#include <string.h>

#include "plugins/persistence/pgsql/pgsql-driver.h"
#include "plugins/persistence/pgsql/pgsql-map.h"
#include "plugins/persistence/pgsql/pgsql-session.h"
#include "plugins/persistence/pgsql/pgsql-values.h"

#define NAME_OF_TRANSACTION "waybill_transaction"
#define NAME_OF_RESET "waybill_reset"
#define NAME_OF_GUARD "waybill_guard"

#define SELECT_INITIAL                                                                             \
    "SELECT pg_catalog.current_setting('session_authorization'), "                                 \
    "pg_catalog.current_setting('role')"
/* Not what is assigned already, if anything: a transaction begun anew may have nothing. */
#define SELECT_TRANSACTION "SELECT pg_catalog.pg_current_xact_id()"
#define IS_OURS "1 / ($3::pg_catalog.xid8 = pg_catalog.pg_current_xact_id())::pg_catalog.int4"
/* User first: it sets the role back to none. */
#define SET_USER                                                                                   \
    "pg_catalog.set_config('session_authorization', $1::pg_catalog.text, false), "                 \
    "pg_catalog.set_config('role', $2::pg_catalog.text, false)"

#define TEXT_SIZE 768

/* Behind a pooler settings are not ours to reset: it keeps account of some, and gives the session
 * to others. Ours go with each transaction there. */
static void write_statement(const wb_storage_session *s, int with_guard, char text[TEXT_SIZE])
{
    char settings[PGSQL_SETTINGS_SIZE] = "";
    if (s->prepared)
        pgsql_session_settings(s, 0, settings);
    /* one column: libpq describes each of each result */
    (void)snprintf(text, TEXT_SIZE, "SELECT pg_catalog.num_nulls(%s%s%s%s)",
                   with_guard ? IS_OURS ", " : "", SET_USER, *settings ? ", " : "", settings);
}

/* ---- queueing ------------------------------------------------------------------ */

static void queue(wb_storage_session *s, pgsql_step step, const char *name, const char *text,
                  const pgsql_value *values, int count)
{
    step.is_prepared = s->prepared && name;
    step.item = WB_SQL_NO_ITEM;
    pgsql_queue_values(s, &step, step.is_prepared ? name : text, values, count);
}

static void prepare(wb_storage_session *s, const char *name, const char *text)
{
    const pgsql_step step = { .kind = PGSQL_STEP_OWN, .item = WB_SQL_NO_ITEM };
    if (!s->exchange.broken)
        pgsql_exchange_note(s, &step, PQsendPrepare(s->connection, name, text, 0, NULL));
}

int pgsql_guard_is_new(const wb_storage_session *s)
{
    return !s->guard.began.rows;
}

static void queue_question(wb_storage_session *s)
{
    pgsql_guard *g = &s->guard;
    pgsql_clear(&g->began);
    g->began = (wb_sql_answer){ 0 };
    queue(s, (pgsql_step){ .ret_answer = &g->began }, NAME_OF_TRANSACTION, SELECT_TRANSACTION,
          NULL, 0);
}

void pgsql_guard_queue_first(wb_storage_session *s)
{
    char text[TEXT_SIZE];
    pgsql_guard *g = &s->guard;

    if (!g->initial.rows) {
        g->encoding = PQclientEncoding(s->connection);
        if (s->prepared) {
            write_statement(s, 1, text);
            prepare(s, NAME_OF_TRANSACTION, SELECT_TRANSACTION);
            prepare(s, NAME_OF_RESET, "RESET ALL");
            prepare(s, NAME_OF_GUARD, text);
        }
        pgsql_queue_text(s, SELECT_INITIAL, &g->initial);
    }
    queue_question(s);
}

static void queue_encoding(wb_storage_session *s, int encoding)
{
    char text[64];
    (void)snprintf(text, sizeof text, "SET client_encoding TO '%s'", pg_encoding_to_char(encoding));
    pgsql_queue_text(s, text, NULL);
}

/* The server reports it with each change. */
void pgsql_guard_queue_encoding(wb_storage_session *s)
{
    if (s->guard.initial.rows && PQclientEncoding(s->connection) != s->guard.encoding)
        queue_encoding(s, s->guard.encoding);
}

/* Which has not run yet: until a handler has the connection it is the one of the beginning. */
void pgsql_guard_queue_encoding_behind(wb_storage_session *s)
{
    queue_encoding(s, s->guard.initial.rows ? s->guard.encoding : PQclientEncoding(s->connection));
}

void pgsql_guard_queue_begin(wb_storage_session *s)
{
    if (s->guard.initial.rows)
        queue_question(s);
}

static pgsql_value value_of(const wb_sql_answer *answer, int column)
{
    const PGresult *rows = answer->rows;
    return (pgsql_value){ .data = PQgetvalue(rows, 0, column),
                          .size = (size_t)PQgetlength(rows, 0, column) };
}

static void queue_statement(wb_storage_session *s, int with_guard)
{
    char text[TEXT_SIZE];
    const pgsql_guard *g = &s->guard;
    pgsql_value values[3] = { value_of(&g->initial, 0), value_of(&g->initial, 1) };

    if (with_guard)
        values[2] = value_of(&g->began, 0);
    if (s->prepared)
        queue(s, (pgsql_step){ 0 }, NAME_OF_RESET, NULL, NULL, 0);
    if (!s->prepared || !with_guard)
        write_statement(s, with_guard, text);
    queue(s, (pgsql_step){ .kind = with_guard ? PGSQL_STEP_GUARD : PGSQL_STEP_OWN },
          with_guard ? NAME_OF_GUARD : NULL, text, values, with_guard ? 3 : 2);
}

/* Where nothing could be asked: no handler had the connection yet, or in a transaction that had failed. */
static void queue_defaults(wb_storage_session *s)
{
    pgsql_queue_text(s, "RESET SESSION AUTHORIZATION", NULL);
    pgsql_queue_text(s, "RESET ROLE", NULL);
    if (s->prepared) {
        pgsql_queue_text(s, "RESET ALL", NULL);
        pgsql_session_queue_settings(s, 0);
    }
}

static void queue_back(wb_storage_session *s)
{
    if (s->guard.initial.rows)
        queue_statement(s, 0);
    else
        queue_defaults(s);
}

void pgsql_guard_queue_commit(wb_storage_session *s)
{
    if (s->guard.is_left && s->guard.began.rows)
        queue_statement(s, 1);
    else if (s->guard.is_deferred)
        queue_back(s);
}

void pgsql_guard_queue_before(wb_storage_session *s)
{
    if (!s->guard.is_left)
        return;
    queue_back(s);
    pgsql_queue_sync(s);
    s->exchange.puts_back = 1;
    s->guard.is_left = 0;
}

/* ---- what was seen --------------------------------------------------------------- */

static int is_tag(const PGresult *result, const char *tag)
{
    return strcmp(PQcmdStatus((PGresult *)result), tag) == 0;
}

/* A COMMIT ends the transaction, whatever comes next; ROLLBACK may have gone to a savepoint. */
void pgsql_guard_watch(wb_storage_session *s, const PGresult *result)
{
    pgsql_guard *g = &s->guard;
    const int is_end = is_tag(result, "COMMIT") || is_tag(result, "PREPARE TRANSACTION");

    if (is_tag(result, "SAVEPOINT"))
        wb_common_savepoints_set(&g->savepoints);
    else if (is_tag(result, "RELEASE"))
        wb_common_savepoints_release(&g->savepoints);
    if (!is_end && !is_tag(result, "ROLLBACK"))
        return;
    g->is_ended |= is_end;
    if (!is_end)
        wb_common_savepoints_roll_back(&g->savepoints);
    if (!g->suspects || g->suspect != s->sql.last_item)
        g->suspects++;
    if (g->suspects == 1)
        g->suspect = s->sql.last_item;
}

int pgsql_guard_found(wb_storage_session *s)
{
    const pgsql_guard *g = &s->guard;
    return wb_sql_note(s, WB_REJECT, WB_CAUSE_OTHER,
                       g->suspects == 1 ? g->suspect : WB_SQL_NO_ITEM,
                       "the handler ended the transaction");
}

void pgsql_guard_hand_out(wb_storage_session *s, size_t item)
{
    pgsql_guard *g = &s->guard;
    if (!g->users)
        g->user = item;
    if (!g->users || s->sql.last_item != item)
        g->users++;
    wb_common_savepoints_hand_out(&g->savepoints, item);
    g->is_left = 1;
}

void pgsql_guard_defer(wb_storage_session *s, pgsql_leaves leaves)
{
    s->guard.is_deferred |= leaves != PGSQL_LEAVES_NOTHING;
}

/* BEGIN asks for a transaction that writes: a server that takes no writes has said so by then. */
int pgsql_guard_met_read_only(wb_storage_session *s, const char *text)
{
    const pgsql_guard *g = &s->guard;
    char line[512];
    if (!g->users)
        return 0;
    (void)snprintf(line, sizeof line, "a handler set the transaction read only: %s", text);
    (void)wb_sql_note(s, WB_RETRY, WB_CAUSE_OTHER, g->users == 1 ? g->user : WB_SQL_NO_ITEM, line);
    s->sql.failure.native_code = pgsql_native_code(PGSQL_READ_ONLY_SQLSTATE);
    return 1;
}

void pgsql_guard_forget(wb_storage_session *s)
{
    pgsql_guard *g = &s->guard;
    pgsql_clear(&g->began);
    g->is_ended = g->is_deferred = 0;
    g->suspects = g->users = 0;
    g->savepoints = (wb_common_savepoints){ 0 };
}

void pgsql_guard_free(pgsql_guard *guard)
{
    pgsql_clear(&guard->initial);
    pgsql_clear(&guard->began);
}

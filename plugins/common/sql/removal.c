/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/removal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/sql/schema.h"
#include "plugins/common/sql/transaction.h"

#define REMOVE "remove the outbox tables"
#define RENAME "rename the outbox tables"
#define NOTE "note subscriptions"
#define READ "read the subscriptions"
#define KEEP "note what is begun"
#define LOOK_UP "look at what was begun"

static wb_sql_outbox *outbox_of(wb_persistence *persistence)
{
    return (wb_sql_outbox *)(void *)persistence;
}

/* ---- sessions ----------------------------------------------------------------------- */

/* Installations of this name are kept out. */
static int begin(wb_persistence *persistence, wb_storage_session **ret_session, const char *doing, wb_error *error)
{
    const wb_sql_outbox *outbox = outbox_of(persistence);
    unsigned ignored = 0;
    int result = outbox->driver->connect(persistence, ret_session, error);
    if (result != WB_OK)
        return result;
    return outbox->dialect->prepare_install(*ret_session, &ignored) == WB_OK
               ? WB_OK
               : wb_sql_report(*ret_session, doing, error);
}

static int commit(wb_storage_session *session, const char *doing, wb_error *error)
{
    return wb_sql_schema_run(session, "COMMIT", NULL) == WB_OK ? WB_OK : wb_sql_report_doubt(session, doing, error);
}

/* Of a table that is not there there are no rows. */
static int was_missing(wb_storage_session *session)
{
    return wb_sql_of(session)->failure.cause == WB_CAUSE_MISSING;
}

/* ---- whose tables --------------------------------------------------------------------- */

typedef struct owner {
    int is_there;
    int is_other; /* another endpoint has that prefix */
} owner;

static const char select_owner[] = "SELECT endpoint FROM {endpoints} WHERE prefix = |{prefix}|";

static int find_owner(wb_storage_session *session, const wb_sql_names *names, owner *ret_owner)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_answer row = { 0 };
    wb_sql_cell cell;
    *ret_owner = (owner){ 0 };
    int result = wb_sql_rename_run(session, names, select_owner, &row);
    if (result == WB_OK && driver->fetch(&row, &cell, 1)) {
        ret_owner->is_there = 1;
        ret_owner->is_other = strcmp(cell.data, names->endpoint) != 0;
    }
    driver->clear(&row);
    return result;
}

/* ---- uninstall ------------------------------------------------------------------------ */

/* The row of the version goes last, with notes: where statements commit by themselves, what is left can be told from a business
 * table of that name. */
static int remove_tables(wb_storage_session *session, wb_error *error)
{
    const wb_sql_dialect *dialect = wb_sql_of(session)->outbox->dialect;
    for (const char *const *statement = dialect->removal; *statement; statement++)
        if (wb_sql_schema_run(session, *statement, NULL) != WB_OK)
            return wb_sql_report(session, REMOVE, error);
    if (wb_sql_schema_run(session, "DELETE FROM {endpoints} WHERE endpoint = {endpoint}", NULL) != WB_OK)
        return wb_sql_report(session, REMOVE, error);
    return commit(session, REMOVE, error);
}

static int uninstall(wb_storage_session *session, wb_error *error)
{
    const wb_sql_names *names = &wb_sql_of(session)->outbox->names;
    owner own;
    if (find_owner(session, names, &own) != WB_OK)
        return was_missing(session) ? WB_OK : wb_sql_report(session, REMOVE, error);
    return own.is_there && !own.is_other ? remove_tables(session, error) : WB_OK;
}

int wb_sql_uninstall(wb_persistence *persistence, wb_error *error)
{
    wb_storage_session *session = NULL;
    int result = begin(persistence, &session, REMOVE, error);
    if (result == WB_OK)
        result = uninstall(session, error);
    if (session)
        outbox_of(persistence)->driver->close(session); /* rolls back what did not commit */
    return result;
}

/* ---- rename --------------------------------------------------------------------------- */

/* What stands at even places is about the names of the session, at odd places about the former ones. */
static char *make_text(const wb_sql_names *names, const wb_sql_names *former, const char *template)
{
    wb_sql_buffer text = { 0 };
    char *copy = strdup(template), *rest = copy;
    for (int i = 0; rest; i++) {
        char *piece = rest;
        rest = strchr(piece, '|');
        if (rest)
            *rest++ = '\0';
        wb_sql_names_expand(i % 2 ? former : names, piece, &text);
    }
    wb_sql_buffer_put(&text, "", 1);
    if (text.failed || !copy) {
        wb_sql_buffer_free(&text);
        text.data = NULL;
    }
    free(copy);
    return text.data;
}

/* Given up: `text`. */
static int run_text(wb_storage_session *session, char *text, int (*run)(wb_storage_session *session, const char *crash_point),
                    wb_sql_answer *ret_rows)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    if (!text)
        return wb_sql_note(session, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM, "out of memory");
    driver->start(session);
    driver->queue_text(session, text, ret_rows);
    int result = run(session, NULL);
    free(text);
    return result;
}

int wb_sql_rename_run(wb_storage_session *session, const wb_sql_names *former, const char *template, wb_sql_answer *ret_rows)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    return run_text(session, make_text(&outbox->names, former, template), outbox->driver->run, ret_rows);
}

static int refuse_both(const wb_sql_outbox *outbox, const wb_sql_names *former, wb_error *error)
{
    const wb_sql_names *names = &outbox->names;
    return outbox->host->fail(outbox->host, error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                              "%s \"%s\" has outbox tables of endpoint \"%s\" and of \"%s\": uninstall one of them",
                              names->quoting->where, names->container, former->endpoint, names->endpoint);
}

/* A copy of the row first, and the former one last: where statements commit by themselves, tables have at each step a row of
 * the name that they have. */
static const char copy_row[] = "INSERT INTO {endpoints} (prefix, endpoint, version) SELECT {prefix}, {endpoint}, version FROM "
                               "{endpoints} WHERE prefix = |{prefix}|";
static const char delete_rows[] = "DELETE FROM {endpoints} WHERE endpoint = |{endpoint}|"; /* notes, too */

static int rename_tables(wb_storage_session *session, const wb_sql_names *former, int is_begun, wb_error *error)
{
    const wb_host *host = wb_sql_of(session)->outbox->host;
    const wb_sql_dialect *dialect = wb_sql_of(session)->outbox->dialect;
    int result = is_begun ? WB_OK : wb_sql_rename_run(session, former, copy_row, NULL);
    host->crash_point("rename_row_copied");
    for (const char *const *statement = dialect->renaming; *statement && result == WB_OK; statement++)
        result = wb_sql_rename_run(session, former, *statement, NULL);
    if (result == WB_OK && dialect->rename_tables)
        result = dialect->rename_tables(session, former);
    host->crash_point("rename_tables_half");
    if (result == WB_OK)
        result = wb_sql_rename_run(session, former, delete_rows, NULL);
    return result == WB_OK ? commit(session, RENAME, error) : wb_sql_report(session, RENAME, error);
}

/* Both have a row: then both have tables, unless one died between the statements of a rename. */
static int are_both(wb_storage_session *session, const wb_sql_names *former, int *ret_both)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    int has_former = 1, has_own = 1;
    int result = WB_OK;
    if (outbox->dialect->has_tables)
        result = outbox->dialect->has_tables(session, former, &has_former);
    if (result == WB_OK && outbox->dialect->has_tables)
        result = outbox->dialect->has_tables(session, &outbox->names, &has_own);
    *ret_both = has_former && has_own;
    return result;
}

static int rename_from(wb_storage_session *session, const wb_sql_names *former, wb_error *error)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    owner old, own;
    int both = 0;
    if (find_owner(session, former, &old) != WB_OK)
        return was_missing(session) ? WB_OK : wb_sql_report(session, RENAME, error);
    if (!old.is_there || old.is_other)
        return WB_OK;
    if (find_owner(session, &outbox->names, &own) != WB_OK || (own.is_there && are_both(session, former, &both) != WB_OK))
        return wb_sql_report(session, RENAME, error);
    return both ? refuse_both(outbox, former, error) : rename_tables(session, former, own.is_there, error);
}

int wb_sql_rename(wb_persistence *persistence, const char *former, wb_error *error)
{
    const wb_sql_outbox *outbox = outbox_of(persistence);
    wb_storage_session *session = NULL;
    wb_sql_names names;
    wb_sql_names_init(&names, outbox->names.quoting, former, outbox->names.container);
    int result = begin(persistence, &session, RENAME, error);
    if (result == WB_OK)
        result = rename_from(session, &names, error);
    if (session)
        outbox->driver->close(session);
    return result;
}

/* ---- notes ---------------------------------------------------------------------------- */

#define NOTE_NAME_MAX 255

/* A row of the endpoint beside the one of the version. What it is called, with a blank that no endpoint's name has, stands in its
 * prefix alone, of which every name makes one that fits. */
typedef struct note {
    char name[2 * NOTE_NAME_MAX + 2];
    wb_sql_names names;
} note;

static void name_note(note *kept, const wb_sql_names *names, const char *name)
{
    (void)snprintf(kept->name, sizeof kept->name, "%.*s %.*s", NOTE_NAME_MAX, names->endpoint, NOTE_NAME_MAX, name);
    wb_sql_names_init(&kept->names, names->quoting, kept->name, names->container);
}

static const char select_note[] = "SELECT version FROM {endpoints} WHERE prefix = |{prefix}| AND endpoint = {endpoint}";
static const char delete_note[] = "DELETE FROM {endpoints} WHERE prefix = |{prefix}|";

/* Never without a row in between: not everywhere are two statements one transaction. */
static int write_note(wb_storage_session *session, const note *kept, int is_there, int number)
{
    char text[160];
    if (!number)
        return wb_sql_rename_run(session, &kept->names, delete_note, NULL);
    (void)snprintf(text, sizeof text,
                   is_there ? "UPDATE {endpoints} SET version = %d WHERE prefix = |{prefix}|"
                            : "INSERT INTO {endpoints} (prefix, endpoint, version) VALUES (|{prefix}|, {endpoint}, %d)", number);
    return wb_sql_rename_run(session, &kept->names, text, NULL);
}

static int keep(wb_storage_session *session, const note *kept, int number, wb_error *error)
{
    owner row;
    if (find_owner(session, &kept->names, &row) != WB_OK)
        return was_missing(session) ? WB_OK : wb_sql_report(session, KEEP, error);
    if (!row.is_there && !number) /* each installation asks for that, by whoever may insert a row */
        return WB_OK;
    if (write_note(session, kept, row.is_there, number) != WB_OK)
        return wb_sql_report(session, KEEP, error);
    return commit(session, KEEP, error);
}

int wb_sql_keep_note(wb_persistence *persistence, const char *name, int32_t number, wb_error *error)
{
    wb_storage_session *session = NULL;
    note kept;
    name_note(&kept, &outbox_of(persistence)->names, name);
    int result = begin(persistence, &session, KEEP, error);
    if (result == WB_OK)
        result = keep(session, &kept, number, error);
    if (session)
        outbox_of(persistence)->driver->close(session);
    return result;
}

/* Under no lock: asked by who runs, too, who may not install. */
static int look_up(wb_storage_session *session, const note *kept, int32_t *ret_number, wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_answer row = { 0 };
    wb_sql_cell cell;
    int result = run_text(session, make_text(&wb_sql_of(session)->outbox->names, &kept->names, select_note), wb_sql_run_outside,
                          &row);
    if (result == WB_OK && driver->fetch(&row, &cell, 1))
        *ret_number = atoi(cell.data);
    driver->clear(&row);
    return result == WB_OK || was_missing(session) ? WB_OK : wb_sql_report(session, LOOK_UP, error);
}

int wb_sql_look_up_note(wb_persistence *persistence, const char *name, int32_t *ret_number, wb_error *error)
{
    const wb_sql_outbox *outbox = outbox_of(persistence);
    wb_storage_session *session = NULL;
    note kept;
    name_note(&kept, &outbox->names, name);
    *ret_number = 0;
    int result = outbox->driver->connect(persistence, &session, error);
    if (result == WB_OK)
        result = look_up(session, &kept, ret_number, error);
    if (session)
        outbox->driver->close(session);
    return result;
}

/* ---- subscriptions -------------------------------------------------------------------- */

static int note_one(wb_storage_session *session, const char *type, int is_over)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const char *const *around = is_over ? outbox->dialect->forget_subscription : outbox->dialect->note_subscription;
    wb_sql_buffer text = { 0 };
    wb_sql_names_expand(&outbox->names, around[0], &text);
    outbox->names.quoting->put_literal(&text, type);
    wb_sql_names_expand(&outbox->names, around[1], &text);
    wb_sql_buffer_put(&text, "", 1);
    if (text.failed) {
        wb_sql_buffer_free(&text);
        text.data = NULL;
    }
    return run_text(session, text.data, outbox->driver->run, NULL);
}

static int note_all(wb_storage_session *session, const char *const *types, size_t count, int is_over, wb_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (note_one(session, types[i], is_over) != WB_OK)
            return is_over && was_missing(session) ? WB_OK : wb_sql_report(session, NOTE, error);
    return commit(session, NOTE, error);
}

int wb_sql_note_subscriptions(wb_persistence *persistence, const char *const *types, size_t count, int is_over,
                              wb_error *error)
{
    wb_storage_session *session = NULL;
    int result = begin(persistence, &session, NOTE, error);
    if (result == WB_OK)
        result = note_all(session, types, count, is_over, error);
    if (session)
        outbox_of(persistence)->driver->close(session);
    return result;
}

static int visit_all(const wb_sql_driver *driver, wb_sql_answer *rows, wb_subscription_fn visit, void *argument)
{
    wb_sql_cell cell;
    int result = WB_OK;
    while (result == WB_OK && driver->fetch(rows, &cell, 1))
        result = visit(argument, cell.data);
    return result;
}

static int read_all(wb_storage_session *session, wb_subscription_fn visit, void *argument, wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_answer rows = { 0 };
    int result = wb_sql_schema_run(session, "SELECT type FROM {subscribed} ORDER BY type", &rows);
    if (result == WB_OK)
        result = visit_all(driver, &rows, visit, argument);
    else
        result = was_missing(session) ? WB_OK : wb_sql_report(session, READ, error);
    driver->clear(&rows);
    return result;
}

int wb_sql_subscriptions(wb_persistence *persistence, wb_subscription_fn visit, void *argument, wb_error *error)
{
    wb_storage_session *session = NULL;
    int result = begin(persistence, &session, READ, error);
    if (result == WB_OK)
        result = read_all(session, visit, argument, error);
    if (session)
        outbox_of(persistence)->driver->close(session);
    return result;
}

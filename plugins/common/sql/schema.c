/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/schema.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/sql/transaction.h"

#define INSTALL "install the outbox tables"

/* Whether the endpoint has a use for a definition: what it is for is 0, or a WB_SQL_FOR_x. */
static int is_for(const wb_sql_outbox *outbox, int purpose)
{
    switch (purpose) {
    case WB_SQL_FOR_DELAYS:
        return outbox->delays;
    case WB_SQL_FOR_PROGRAMS:
        return outbox->sql_api;
    case WB_SQL_FOR_POSITIONS:
        return outbox->positions;
    case WB_SQL_FOR_SUBSCRIPTIONS:
        return outbox->subscriptions;
    case WB_SQL_FOR_FAILURES:
        return outbox->failures;
    default:
        return 1;
    }
}

/* Of an installation by hand, where nobody knows which of the dialect's conditions hold. */
static int is_written(const wb_sql_outbox *outbox, int when)
{
    const wb_sql_dialect *dialect = outbox->dialect;
    if (!is_for(outbox, when - when % WB_SQL_FOR_DELAYS))
        return 0;
    return !dialect->is_written ||
           dialect->is_written(&outbox->names, when % WB_SQL_FOR_DELAYS);
}

static void put_definition(const wb_sql_outbox *outbox, const wb_sql_definition *definition, wb_sql_buffer *text)
{
    const wb_sql_dialect *dialect = outbox->dialect;
    const int is_compound = dialect->compound_start && strstr(definition->template, ";\n");
    wb_sql_buffer_put_text(text, is_compound ? dialect->compound_start : "");
    wb_sql_names_expand(&outbox->names, definition->template, text);
    wb_sql_buffer_put_text(text, is_compound ? dialect->compound_end : ";\n");
}

char *wb_sql_schema_text(const wb_sql_outbox *outbox)
{
    const wb_sql_dialect *dialect = outbox->dialect;
    const wb_sql_names *names = &outbox->names;
    wb_sql_buffer text = { 0 };

    wb_sql_buffer_put_text(&text, dialect->schema_start);
    for (size_t i = 0; i < dialect->definition_count; i++) {
        const wb_sql_definition *definition = &dialect->definitions[i];
        if (!is_written(outbox, definition->when))
            continue;
        if (definition->comment) {
            wb_sql_buffer_put_text(&text, "-- ");
            wb_sql_buffer_put_text(&text, definition->comment);
            wb_sql_buffer_put_text(&text, "\n");
        }
        put_definition(outbox, definition, &text);
    }
    wb_sql_names_expand(names, dialect->record_version, &text);
    wb_sql_buffer_put_text(&text, ";\n");
    wb_sql_buffer_put_text(&text, dialect->schema_end);
    wb_sql_buffer_put(&text, "", 1);
    if (text.failed) {
        wb_sql_buffer_free(&text);
        return NULL;
    }
    return text.data;
}

const char *wb_sql_schema(wb_persistence *persistence)
{
    return ((const wb_sql_outbox *)(void *)persistence)->schema;
}

static int run_text(wb_storage_session *session, const char *template,
                    int (*run)(wb_storage_session *session, const char *crash_point),
                    wb_sql_answer *ret_rows)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    char *text = wb_sql_names_text(&outbox->names, template);

    if (!text)
        return wb_sql_note(session, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM, "out of memory");
    outbox->driver->start(session);
    outbox->driver->queue_text(session, text, ret_rows);
    int result = run(session, NULL);
    free(text);
    return result;
}

int wb_sql_schema_run(wb_storage_session *session, const char *template, wb_sql_answer *ret_rows)
{
    return run_text(session, template, wb_sql_of(session)->outbox->driver->run, ret_rows);
}

/* ---- the version ---------------------------------------------------------------- */

static int compare(const wb_sql_outbox *outbox, const char *endpoint, int version, wb_error *error)
{
    const wb_host *host = outbox->host;
    const wb_sql_names *names = &outbox->names;
    const char *where = names->quoting->where;
    const int known = outbox->dialect->schema_version;

    if (strcmp(endpoint, names->endpoint) != 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                          "the outbox tables \"%s_...\" in %s \"%s\" belong to endpoint \"%s\": "
                          "set another option \"%s\" for endpoint \"%s\"",
                          names->prefix, where, names->container, endpoint, where,
                          names->endpoint);
    if (version > known)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_MISMATCH, version,
                          "the outbox tables of endpoint \"%s\" in %s \"%s\" have version %d, this "
                          "plugin knows version %d: use a newer Waybill",
                          endpoint, where, names->container, version, known);
    return WB_OK;
}

static int read_version(wb_storage_session *session,
                        int (*run)(wb_storage_session *session, const char *crash_point),
                        int *ret_version, wb_error *error)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    wb_sql_answer row = { 0 };
    wb_sql_cell cells[2];
    int result = run_text(
        session, "SELECT endpoint, version FROM {endpoints} WHERE prefix = {prefix}", run, &row);

    *ret_version = 0;
    if (result != WB_OK) {
        result = wb_sql_report(session, "read the version of the outbox tables", error);
    } else if (outbox->driver->fetch(&row, cells, 2)) {
        *ret_version = atoi(cells[1].data);
        result = compare(outbox, cells[0].data, *ret_version, error);
    }
    outbox->driver->clear(&row);
    return result;
}

int wb_sql_check_version(wb_storage_session *session, wb_error *error)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const wb_sql_names *names = &outbox->names;
    int version = 0;
    int result = read_version(session, wb_sql_run_outside, &version, error);

    wb_sql_of(session)->has_compact_keys = version >= WB_SQL_COMPACT_VERSION;
    if (result != WB_OK || version)
        return result;
    return outbox->host->fail(outbox->host, error, WB_FATAL, WB_CAUSE_MISSING, 0,
                              "the outbox tables of endpoint \"%s\" in %s \"%s\" have no "
                              "version: run \"waybill install\"",
                              names->endpoint, names->quoting->where, names->container);
}

/* ---- install and verify ------------------------------------------------------------ */

/* What statements want of tables that were there already: IF NOT EXISTS asks for the name alone. */
static const char *const probes[] = {
    "SELECT batch FROM {dedup} WHERE 1 = 0",
    "SELECT batch, operations FROM {pending} WHERE 1 = 0",
    NULL,
};

/* A business table may have the name, too. */
static int refuse_foreign(wb_storage_session *session, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_sql_names *names = &s->outbox->names;
    const wb_host *host = s->outbox->host;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_MISMATCH, s->failure.native_code,
                      "a table \"%s_...\" in %s \"%s\" is not one of an outbox (%s): rename it, or set another "
                      "option \"%s\" for endpoint \"%s\"",
                      names->prefix, names->quoting->where, names->container, s->failure.text,
                      names->quoting->where, names->endpoint);
}

static int report_failure(wb_storage_session *session, wb_error *error)
{
    return wb_sql_of(session)->failure.cause == WB_CAUSE_MISMATCH ? refuse_foreign(session, error)
                                                                  : wb_sql_report(session, INSTALL, error);
}

static int probe_these(wb_storage_session *session, const char *const *statements, wb_error *error)
{
    for (; *statements; statements++)
        if (wb_sql_schema_run(session, *statements, NULL) != WB_OK)
            return report_failure(session, error);
    return WB_OK;
}

static int probe(wb_storage_session *session, wb_error *error)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const int result = probe_these(session, probes, error);
    if (result != WB_OK || !outbox->sql_api || !outbox->dialect->written_probes)
        return result;
    return probe_these(session, outbox->dialect->written_probes, error);
}

/* `holds` is about the dialect's own conditions. */
static int is_wanted(const wb_sql_outbox *outbox, int when, unsigned holds)
{
    return is_for(outbox, when - when % WB_SQL_FOR_DELAYS) && (holds >> when % WB_SQL_FOR_DELAYS & 1);
}

static int define(wb_storage_session *session, size_t from, size_t to, unsigned holds,
                  wb_error *error)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const wb_sql_dialect *dialect = outbox->dialect;
    for (size_t i = from; i < to; i++) {
        const wb_sql_definition *definition = &dialect->definitions[i];
        if (is_wanted(outbox, definition->when, holds) &&
            wb_sql_schema_run(session, definition->template, NULL) != WB_OK)
            return report_failure(session, error);
    }
    return WB_OK;
}

/* The table of versions must be there before it can be asked whose the others are. */
static int install(wb_storage_session *session, wb_error *error)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const wb_sql_dialect *dialect = outbox->dialect;
    unsigned holds = 0;
    int version = 0;

    if (dialect->prepare_install(session, &holds) != WB_OK)
        return wb_sql_report(session, INSTALL, error);
    holds |= 1;
    int result = define(session, 0, dialect->first_count, holds, error);
    if (result == WB_OK)
        result = read_version(session, outbox->driver->run, &version, error);
    if (result == WB_OK)
        result = define(session, dialect->first_count, dialect->definition_count, holds, error);
    if (result == WB_OK)
        result = probe(session, error);
    if (result == WB_OK && (wb_sql_schema_run(session, dialect->record_version, NULL) != WB_OK ||
                            wb_sql_schema_run(session, "COMMIT", NULL) != WB_OK))
        result = wb_sql_report(session, INSTALL, error);
    return result;
}

static const wb_sql_driver *driver_of(wb_persistence *persistence)
{
    return ((const wb_sql_outbox *)(void *)persistence)->driver;
}

int wb_sql_install(wb_persistence *persistence, wb_error *error)
{
    const wb_sql_driver *driver = driver_of(persistence);
    wb_storage_session *session = NULL;
    int result = driver->connect(persistence, &session, error);

    if (result != WB_OK)
        return result;
    result = install(session, error);
    driver->close(session); /* rolls back what did not commit, and frees the lock */
    return result;
}

int wb_sql_verify(wb_persistence *persistence, wb_error *error)
{
    const wb_sql_driver *driver = driver_of(persistence);
    wb_storage_session *session = NULL;
    int result = driver->connect(persistence, &session, error);

    if (result != WB_OK)
        return result;
    for (int (*const *check)(wb_storage_session *, wb_error *) =
             wb_sql_of(session)->outbox->dialect->checks;
         *check && result == WB_OK; check++)
        result = (*check)(session, error);
    driver->close(session);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSTALL_LOCK_SECONDS "60"

typedef struct statement {
    int version; /* of the schema that needs it */
    const char *comment;
    const char *template;
} statement;

/* A later version appends its statements here. Each must be harmless where it was run
 * before: MySQL commits DDL at once, so that an installation that dies is repeated. */
static const statement statements[] = {
    { 1, "which endpoints have tables here, and in which version",
      "CREATE TABLE IF NOT EXISTS {endpoints} (\n"
      "    prefix varchar(50) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,\n"
      "    endpoint varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,\n"
      "    version int NOT NULL,\n"
      "    installed timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP\n) ENGINE = InnoDB" },
    { 1, "ids that were processed, until they are deleted by age: batch >> 22 is in milliseconds "
         "since 2020",
      "CREATE TABLE IF NOT EXISTS {dedup} (\n"
      "    id varbinary(255) NOT NULL PRIMARY KEY,\n"
      "    batch bigint unsigned NOT NULL,\n"
      "    KEY batch (batch)\n) ENGINE = InnoDB" },
    { 1, "outgoing operations of a batch, from its commit until they are dispatched",
      "CREATE TABLE IF NOT EXISTS {pending} (\n"
      "    batch bigint unsigned NOT NULL PRIMARY KEY,\n"
      "    operations longblob NOT NULL\n) ENGINE = InnoDB" },
};
#define STATEMENT_COUNT (sizeof statements / sizeof statements[0])

#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)
#define RECORD_VERSION                                                                             \
    "INSERT INTO {endpoints} (prefix, endpoint, version)\n"                                        \
    "    VALUES ({prefix}, {endpoint}, " TEXT_OF(MYS_SCHEMA_VERSION) ")\n"                         \
    "    ON DUPLICATE KEY UPDATE version = GREATEST(version, " TEXT_OF(MYS_SCHEMA_VERSION) ")"

char *mys_schema_text(const wb_sql_names *names)
{
    wb_sql_buffer text = { 0 };

    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        wb_sql_buffer_put_text(&text, "-- ");
        wb_sql_buffer_put_text(&text, statements[i].comment);
        wb_sql_buffer_put_text(&text, "\n");
        wb_sql_names_expand(names, statements[i].template, &text);
        wb_sql_buffer_put_text(&text, ";\n");
    }
    wb_sql_names_expand(names, RECORD_VERSION ";\n", &text);
    wb_sql_buffer_put(&text, "", 1);
    if (text.failed) {
        wb_sql_buffer_free(&text);
        return NULL;
    }
    return text.data;
}

int mys_schema_run(wb_storage_session *s, const char *template, MYSQL_RES **ret_rows)
{
    mys_exchange_start(s);
    wb_sql_names_expand(&s->persistence->sql.names, template, &s->exchange.text);
    mys_exchange_end_rows(s, ret_rows);
    return mys_exchange_run(s, NULL);
}

static int compare(const wb_persistence *p, const char *endpoint, int version, wb_error *error)
{
    if (strcmp(endpoint, p->sql.names.endpoint) != 0)
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                             "the outbox tables \"%s_...\" in database \"%s\" belong to endpoint "
                             "\"%s\": set another option \"database\" for endpoint \"%s\"",
                             p->sql.names.prefix, p->sql.names.container, endpoint, p->sql.names.endpoint);
    if (version > MYS_SCHEMA_VERSION)
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_MISMATCH, version,
                             "the outbox tables of endpoint \"%s\" in database \"%s\" have version "
                             "%d, this plugin knows version %d: use a newer Waybill",
                             endpoint, p->sql.names.container, version, MYS_SCHEMA_VERSION);
    return WB_OK;
}

int mys_schema_read_version(wb_storage_session *s, int *ret_version, wb_error *error)
{
    MYSQL_RES *rows = NULL;
    int result = mys_schema_run(
        s, "SELECT endpoint, version FROM {endpoints} WHERE prefix = {prefix}", &rows);

    *ret_version = 0;
    if (result != WB_OK) {
        mysql_free_result(rows);
        return wb_sql_report(s, "read the version of the outbox tables", error);
    }
    MYSQL_ROW row = mysql_fetch_row(rows);
    if (row) {
        *ret_version = atoi(row[1]);
        result = compare(s->persistence, row[0], *ret_version, error);
    }
    mysql_free_result(rows);
    return result;
}

/* ---- install ------------------------------------------------------------------ */

/* Of two installations one waits. The lock goes with the connection. */
static int lock_out_others(wb_storage_session *s)
{
    char name[MYS_LOCK_NAME_SIZE];
    char text[128];
    MYSQL_RES *answer = NULL;

    mys_names_lock(&s->persistence->sql.names, "install", "", name);
    (void)snprintf(text, sizeof text, "SELECT GET_LOCK('%s', " INSTALL_LOCK_SECONDS ")", name);
    int result = mys_schema_run(s, text, &answer);
    MYSQL_ROW row = answer ? mysql_fetch_row(answer) : NULL;
    if (result == WB_OK && (!row || !row[0] || *row[0] != '1'))
        result = wb_sql_note(s, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM,
                                  "another installation has run for " INSTALL_LOCK_SECONDS
                                  " seconds");
    mysql_free_result(answer);
    return result;
}

static int make_tables(wb_storage_session *s, size_t from, size_t to, wb_error *error)
{
    for (size_t i = from; i < to; i++)
        if (mys_schema_run(s, statements[i].template, NULL) != WB_OK)
            return wb_sql_report(s, "install the outbox tables", error);
    return WB_OK;
}

/* The table of versions must be there before it can be asked whose the others are. */
static int install(wb_storage_session *s, wb_error *error)
{
    int version = 0;
    int result = make_tables(s, 0, 1, error);
    if (result == WB_OK)
        result = mys_schema_read_version(s, &version, error);
    if (result == WB_OK)
        result = make_tables(s, 1, STATEMENT_COUNT, error);
    if (result == WB_OK && (mys_schema_run(s, RECORD_VERSION, NULL) != WB_OK ||
                            mys_schema_run(s, "COMMIT", NULL) != WB_OK))
        result = wb_sql_report(s, "install the outbox tables", error);
    return result;
}

int mys_install(wb_persistence *p, wb_error *error)
{
    wb_storage_session *s = NULL;
    int result = mys_session_open(p, &s, error);

    if (result != WB_OK)
        return result;
    if (lock_out_others(s) != WB_OK)
        result = wb_sql_report(s, "install the outbox tables", error);
    else
        result = install(s, error);
    mys_session_close(s);
    return result;
}

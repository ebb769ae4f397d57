/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "plugins/common/sql/schema.h"
#include "plugins/persistence/mysql/mysql-driver.h"
#include "plugins/persistence/mysql/mysql-session.h"

/* EXPLAIN needs the tables, columns and privileges that the statement does, and does
 * nothing. */
static const char *const probes[] = {
    "EXPLAIN SELECT id, batch FROM {dedup} WHERE id = x'00'",
    "EXPLAIN INSERT INTO {dedup} (id, batch) VALUES (x'00', 0) ON DUPLICATE KEY UPDATE batch = 0",
    "EXPLAIN DELETE FROM {dedup} WHERE batch = 0",
    "EXPLAIN SELECT batch, operations FROM {pending} WHERE batch = 0",
    "EXPLAIN INSERT INTO {pending} (batch, operations) VALUES (0, x'00')",
    "EXPLAIN UPDATE {pending} SET operations = x'00' WHERE batch = 0",
    "EXPLAIN DELETE FROM {pending} WHERE batch = 0",
};
static const char *const delayed_probes[] = {
    "EXPLAIN SELECT id, destination, retries, due, taken_by, taken_until, doubtful, failures, operation "
    "FROM {delayed} WHERE due = 0",
    "EXPLAIN INSERT INTO {delayed} (id, destination, retries, due, operation) "
    "VALUES (x'00', x'00', 0, 0, x'00') ON DUPLICATE KEY UPDATE failures = failures",
    "EXPLAIN UPDATE {delayed} SET taken_by = '', taken_until = 0, doubtful = 0 WHERE due = 0",
    "EXPLAIN DELETE FROM {delayed} WHERE due = 0",
};
static const char *const position_probes[] = {
    "EXPLAIN SELECT `partition`, position, batch FROM {positions} WHERE `partition` = x'00'",
    "EXPLAIN INSERT INTO {positions} (`partition`, position, batch) VALUES (x'00', 0, 0) ON DUPLICATE KEY UPDATE batch = batch",
    "EXPLAIN UPDATE {positions} SET position = 0, batch = 0 WHERE `partition` = x'00'",
    "EXPLAIN DELETE FROM {positions}",
};
static const char *const failed_probes[] = {
    "EXPLAIN SELECT id, status, attempts, failed_at, changed_at, summary, message FROM {failed} WHERE id = x'00'",
    ("EXPLAIN INSERT INTO {failed} (id, status, attempts, failed_at, changed_at, summary, message) "
     "VALUES (x'00', 0, 0, 0, 0, x'00', x'00') ON DUPLICATE KEY UPDATE status = status"),
    "EXPLAIN UPDATE {failed} SET status = 0, changed_at = 0 WHERE id = x'00'",
    "EXPLAIN DELETE FROM {failed} WHERE id = x'00'",
};
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static int probe(wb_storage_session *s, const char *const *statements, size_t count,
                 const char *action, wb_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (wb_sql_schema_run(s, statements[i], NULL) != WB_OK)
            return wb_sql_report(s, action, error);
    return WB_OK;
}

static int check_tables(wb_storage_session *s, wb_error *error)
{
    int result = probe(s, probes, COUNT_OF(probes), "use the outbox tables", error);
    if (result == WB_OK && s->sql.outbox->delays)
        result = probe(s, delayed_probes, COUNT_OF(delayed_probes), "use the table of delayed messages", error);
    if (result == WB_OK && s->sql.outbox->positions)
        result = probe(s, position_probes, COUNT_OF(position_probes), "use the table of positions", error);
    if (result == WB_OK && s->sql.outbox->failures)
        result = probe(s, failed_probes, COUNT_OF(failed_probes), "use the table of failed messages", error);
    return result;
}

static int check_engine(wb_storage_session *s, wb_error *error)
{
    const wb_persistence *p = s->persistence;
    wb_sql_answer rows = { 0 };
    wb_sql_cell cells[2];
    int result = wb_sql_schema_run(s,
                                "SELECT table_name, engine FROM information_schema.tables "
                                "WHERE table_schema = {database} AND engine <> 'InnoDB' AND "
                                "table_name IN (CONCAT({prefix}, '_dedup'), "
                                "CONCAT({prefix}, '_pending'), CONCAT({prefix}, '_delayed'), "
                                "CONCAT({prefix}, '_positions'), CONCAT({prefix}, '_failed'))",
                                &rows);
    if (result != WB_OK)
        result = wb_sql_report(s, "look at the outbox tables", error);
    else if (mys_fetch(&rows, cells, 2))
        result = p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                               "the outbox table \"%s\" has engine %s, which knows no "
                               "transactions: ALTER TABLE ... ENGINE = InnoDB",
                               cells[0].data, cells[1].data);
    mys_clear(&rows);
    return result;
}

/* ---- the server's settings ------------------------------------------------------- */

/* A claim statement must fit: mys_dialect.keys_max ids of 255 bytes. */
#define PACKET_MIN ((size_t)1024 * 1024 - 1)

typedef struct settings {
    int has_binlog;
    int is_statement_binlog;
    int is_replica; /* takes no writes */
} settings;

/* Said, but not refused: some people test on such servers. */
static void warn(const wb_storage_session *s, const char *name, const char *value, const char *remedy)
{
    const wb_field fields[] = { { "setting", name }, { "value", value }, { "remedy", remedy } };
    s->host->log(s->host, WB_LOG_WARNING,
                 "a setting of MySQL is unsafe: commits can be lost when the machine fails", fields,
                 3);
}

static int is_on(const char *value)
{
    return strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0;
}

static void take_setting(const wb_storage_session *s, const char *name, const char *value,
                         settings *ret)
{
    if (strcmp(name, "log_bin") == 0)
        ret->has_binlog = is_on(value);
    else if (strcmp(name, "binlog_format") == 0)
        ret->is_statement_binlog = strcasecmp(value, "STATEMENT") == 0;
    else if (strcmp(name, "innodb_read_only") == 0)
        ret->is_replica |= is_on(value);
    else if (strcmp(name, "innodb_flush_log_at_trx_commit") == 0 && strcmp(value, "1") != 0 &&
             strcmp(value, "3") != 0)
        warn(s, name, value, "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and the same in my.cnf");
    else if (strcmp(name, "innodb_doublewrite") == 0 && strcasecmp(value, "OFF") == 0)
        warn(s, name, value, "innodb_doublewrite = ON in my.cnf, and restart the server");
    else if (strcmp(name, "sync_binlog") == 0 && ret->has_binlog && strcmp(value, "1") != 0)
        warn(s, name, value, "SET GLOBAL sync_binlog = 1, and the same in my.cnf");
    else if (strcmp(name, "wsrep_on") == 0 && is_on(value))
        warn(s, name, value, NULL);
}

static int check_settings(wb_storage_session *s, wb_error *error)
{
    const wb_host *host = s->host;
    settings found = { 0 };
    wb_sql_answer rows = { 0 };
    wb_sql_cell cells[2];
    /* in the order of their names: log_bin stands before sync_binlog */
    int result = wb_sql_schema_run(
        s,
        "SHOW VARIABLES WHERE Variable_name IN ('binlog_format', 'innodb_doublewrite', "
        "'innodb_flush_log_at_trx_commit', 'innodb_read_only', 'log_bin', 'sync_binlog', "
        "'wsrep_on')",
        &rows);
    if (result != WB_OK)
        result = wb_sql_report(s, "read the server's settings", error);
    while (result == WB_OK && mys_fetch(&rows, cells, 2))
        take_setting(s, cells[0].data, cells[1].data, &found);
    mys_clear(&rows);
    if (result == WB_OK && found.has_binlog && found.is_statement_binlog)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 1665,
                          "the server's binlog_format is STATEMENT, which cannot log what "
                          "transactions in READ COMMITTED write: set it to ROW or MIXED");
    if (result == WB_OK && s->packet_max < PACKET_MIN)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 1153,
                          "the server's max_allowed_packet is %zu bytes: set it to 1 MiB at "
                          "least, and to twice what the outgoing messages of a batch take",
                          s->packet_max + 1);
    if (result == WB_OK && found.is_replica)
        return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                          "the MySQL server takes no writes: name its primary in option \"host\"");
    return result;
}

/* Some roles may write to a replica; most cannot even begin. */
static int check_writable(wb_storage_session *s, wb_error *error)
{
    if (wb_sql_schema_run(s, "START TRANSACTION READ WRITE", NULL) == WB_OK &&
        wb_sql_schema_run(s, "ROLLBACK AND NO CHAIN NO RELEASE", NULL) == WB_OK)
        return WB_OK;
    return wb_sql_report(s, "begin a transaction that writes", error);
}

int (*const mys_checks[])(wb_storage_session *, wb_error *) = {
    wb_sql_check_version, check_settings, check_writable, check_tables, check_engine, NULL,
};

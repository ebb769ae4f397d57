/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data of the mysql persistence, for the conformance kit. Keys need no escaping.
 */
#include <mysql.h>
#include <stdio.h>
#include <waybill/mysql.h>
#include <waybill/sys/business.h>

/* @return NULL, or why it failed. */
static const char *run(const void *interface, void *session, size_t item, const char *sql)
{
    MYSQL *db = ((const wb_mysql_api *)interface)->connection(session, item);
    if (!db)
        return "there is no connection";
    return mysql_query(db, sql) == 0 ? NULL : mysql_error(db);
}

/* Commits by itself. */
static const char *prepare(const void *interface, void *session, size_t item)
{
    return run(interface, session, item,
               "CREATE TABLE IF NOT EXISTS waybill_conformance (name VARCHAR(64) PRIMARY KEY) ENGINE = InnoDB");
}

static const char *write_key(const void *interface, void *session, size_t item, const char *key)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql, "INSERT INTO waybill_conformance VALUES ('%s')", key);
    return run(interface, session, item, sql);
}

static const char *read_key(const void *interface, void *session, size_t item, const char *key,
                            int *ret_is_there)
{
    MYSQL *db = ((const wb_mysql_api *)interface)->connection(session, item);
    char sql[160];
    (void)snprintf(sql, sizeof sql, "SELECT 1 FROM waybill_conformance WHERE name = '%s'", key);
    const char *problem = run(interface, session, item, sql);
    MYSQL_RES *rows = problem ? NULL : mysql_store_result(db);
    if (!rows)
        return problem ? problem : mysql_error(db);
    *ret_is_there = mysql_num_rows(rows) == 1;
    mysql_free_result(rows);
    return NULL;
}

static const char *end(const void *interface, void *session, size_t item, int way)
{
    if (way < WB_BUSINESS_COMMIT || way > WB_BUSINESS_ROLLBACK_BEGIN)
        return "there is no such way to end a transaction";
    const char *how = way == WB_BUSINESS_ROLLBACK_BEGIN ? "ROLLBACK" : "COMMIT";
    const char *ending = run(interface, session, item, how);
    const char *beginning = way == WB_BUSINESS_COMMIT ? NULL : run(interface, session, item, "BEGIN");
    return ending ? ending : beginning;
}

static const char *remove_key(const void *interface, void *session, size_t item, const char *key)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql, "DELETE FROM waybill_conformance WHERE name = '%s'", key);
    return run(interface, session, item, sql);
}

static const wb_business business = { sizeof business, WB_MYSQL_INTERFACE, prepare, write_key,
                                      read_key, end, remove_key };
WB_BUSINESS(business)

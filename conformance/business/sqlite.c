/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data of the sqlite persistence, for the conformance kit.
 */
#include <sqlite3.h>
#include <waybill/sqlite.h>
#include <waybill/sys/business.h>

static sqlite3 *connection(const void *interface, void *session, size_t item)
{
    return ((const wb_sqlite_api *)interface)->connection(session, item);
}

/* Runs a statement with the key as its parameter. @return the number of the last step's result. */
static int run(sqlite3 *db, const char *sql, const char *key)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        return SQLITE_ERROR;
    (void)sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    const int step = sqlite3_step(statement);
    (void)sqlite3_finalize(statement);
    return step;
}

static const char *prepare(const void *interface, void *session, size_t item)
{
    sqlite3 *db = connection(interface, session, item);
    const char *sql = "CREATE TABLE IF NOT EXISTS waybill_conformance (key TEXT PRIMARY KEY) WITHOUT ROWID";
    return db && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? NULL : sqlite3_errmsg(db);
}

static const char *write_key(const void *interface, void *session, size_t item, const char *key)
{
    sqlite3 *db = connection(interface, session, item);
    return db && run(db, "INSERT INTO waybill_conformance VALUES (?)", key) == SQLITE_DONE ? NULL
                                                                                           : sqlite3_errmsg(db);
}

static const char *read_key(const void *interface, void *session, size_t item, const char *key,
                            int *ret_is_there)
{
    sqlite3 *db = connection(interface, session, item);
    const int step = db ? run(db, "SELECT 1 FROM waybill_conformance WHERE key = ?", key) : SQLITE_ERROR;
    *ret_is_there = step == SQLITE_ROW;
    return step == SQLITE_ROW || step == SQLITE_DONE ? NULL : sqlite3_errmsg(db);
}

static const char *end(const void *interface, void *session, size_t item, int way)
{
    sqlite3 *db = connection(interface, session, item);
    if (!db || way < WB_BUSINESS_COMMIT || way > WB_BUSINESS_ROLLBACK_BEGIN)
        return db ? "there is no such way to end a transaction" : "there is no connection";
    const char *how = way == WB_BUSINESS_ROLLBACK_BEGIN ? "ROLLBACK" : "COMMIT";
    const int is_ended = sqlite3_exec(db, how, NULL, NULL, NULL) == SQLITE_OK;
    const int is_begun = way == WB_BUSINESS_COMMIT || sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
    return is_ended && is_begun ? NULL : sqlite3_errmsg(db);
}

static const char *remove_key(const void *interface, void *session, size_t item, const char *key)
{
    sqlite3 *db = connection(interface, session, item);
    return db && run(db, "DELETE FROM waybill_conformance WHERE key = ?", key) == SQLITE_DONE ? NULL
                                                                                              : sqlite3_errmsg(db);
}

static const wb_business business = { sizeof business, WB_SQLITE_INTERFACE, prepare, write_key,
                                      read_key, end, remove_key };
WB_BUSINESS(business)

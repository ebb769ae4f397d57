/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data of the pgsql persistence, for the conformance kit.
 */
#include <libpq-fe.h>
#include <waybill/pgsql.h>
#include <waybill/sys/business.h>

/* @return NULL, or why it failed; *ret_rows is the number of rows it returned. */
static const char *run(const void *interface, void *session, size_t item, const char *sql,
                       const char *key, int *ret_rows)
{
    PGconn *db = ((const wb_pgsql_api *)interface)->connection(session, item);
    if (!db)
        return "there is no connection";
    PGresult *result = PQexecParams(db, sql, key != NULL, NULL, &key, NULL, NULL, 0);
    const ExecStatusType status = PQresultStatus(result);
    *ret_rows = PQntuples(result);
    PQclear(result);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? NULL : PQerrorMessage(db);
}

/* Another process may be making it: of two who do one fails, unless they take turns. */
static const char *prepare(const void *interface, void *session, size_t item)
{
    int rows;
    const char *problem = run(interface, session, item, "SELECT pg_advisory_xact_lock(716253)", NULL, &rows);
    return problem ? problem
                   : run(interface, session, item,
                         "CREATE TABLE IF NOT EXISTS waybill_conformance (key text PRIMARY KEY)", NULL, &rows);
}

static const char *write_key(const void *interface, void *session, size_t item, const char *key)
{
    int rows;
    return run(interface, session, item, "INSERT INTO waybill_conformance VALUES ($1)", key, &rows);
}

static const char *read_key(const void *interface, void *session, size_t item, const char *key,
                            int *ret_is_there)
{
    return run(interface, session, item, "SELECT FROM waybill_conformance WHERE key = $1", key, ret_is_there);
}

static const char *end(const void *interface, void *session, size_t item, int way)
{
    int rows;
    if (way < WB_BUSINESS_COMMIT || way > WB_BUSINESS_ROLLBACK_BEGIN)
        return "there is no such way to end a transaction";
    const char *how = way == WB_BUSINESS_ROLLBACK_BEGIN ? "ROLLBACK" : "COMMIT";
    const char *ending = run(interface, session, item, how, NULL, &rows);
    const char *beginning = way == WB_BUSINESS_COMMIT ? NULL : run(interface, session, item, "BEGIN", NULL, &rows);
    return ending ? ending : beginning;
}

static const char *remove_key(const void *interface, void *session, size_t item, const char *key)
{
    int rows;
    return run(interface, session, item, "DELETE FROM waybill_conformance WHERE key = $1", key, &rows);
}

static const wb_business business = { sizeof business, WB_PGSQL_INTERFACE, prepare, write_key,
                                      read_key, end, remove_key };
WB_BUSINESS(business)

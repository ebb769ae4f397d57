/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/pgsql/pgsql-map.h"
#include "plugins/persistence/pgsql/pgsql-refusal.h"
#include "plugins/persistence/pgsql/pgsql-session.h"

#define SQLSTATE_SIZE 6

static int level_of(const char *severity)
{
    if (!severity || strcmp(severity, "DEBUG") == 0)
        return WB_LOG_DEBUG;
    return strcmp(severity, "WARNING") == 0 ? WB_LOG_WARNING : WB_LOG_INFO;
}

/* Notices would go to stderr. */
static void take_notice(void *argument, const PGresult *notice)
{
    const wb_storage_session *s = argument;
    const wb_field fields[] = {
        { "text", PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY) },
        { "sqlstate", PQresultErrorField(notice, PG_DIAG_SQLSTATE) },
    };
    s->host->log(s->host, level_of(PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED)),
                 "notice from PostgreSQL", fields, 2);
}

/* Libpq keeps no SQLSTATE of a refused connection; with verbose errors it is in the text:
 * "FATAL:  28P01: password authentication failed". The last one counts: of several
 * servers it is the one that was tried last. */
static const char *find_sqlstate(const char *message, char sqlstate[SQLSTATE_SIZE])
{
    const char *text = NULL;
    for (const char *at = message; (at = strstr(at, ":  ")) != NULL; at += 3) {
        size_t size = strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (size == SQLSTATE_SIZE - 1 && strncmp(at + 3 + size, ": ", 2) == 0) {
            memcpy(sqlstate, at + 3, size);
            sqlstate[size] = '\0';
            text = at + 3 + size + 2;
        }
    }
    return text;
}

static int fail_connect(const wb_storage_session *s, wb_error *error)
{
    const wb_host *host = s->host;
    const char *message = PQerrorMessage(s->connection);
    char sqlstate[SQLSTATE_SIZE] = "";
    const char *text = find_sqlstate(message, sqlstate);
    const pgsql_refusal *refusal = pgsql_refusal_find(message);

    if (text) {
        const pgsql_mapping *mapping = pgsql_map(sqlstate);
        int result = mapping->own == WB_FATAL ? WB_FATAL : WB_NOT_CONNECTED;
        return host->fail(host, error, result, mapping->own_cause, pgsql_native_code(sqlstate),
                          "could not connect to PostgreSQL: %.*s (SQLSTATE %s)%s",
                          (int)strcspn(text, "\n"), text, sqlstate,
                          refusal ? refusal->remedy : "");
    }
    while (isspace((unsigned char)*message))
        message++;
    if (PQconnectionNeedsPassword(s->connection))
        return host->fail(host, error, WB_FATAL, WB_CAUSE_REFUSED, 0,
                          "could not connect to PostgreSQL: the server asks for a password: set "
                          "option \"password\"");
    return host->fail(host, error, refusal ? refusal->result : WB_NOT_CONNECTED,
                      refusal ? refusal->cause : WB_CAUSE_UNREACHABLE, 0,
                      "could not connect to PostgreSQL: %.*s%s%s", (int)strcspn(message, "\n"),
                      message, refusal ? refusal->remedy : "",
                      s->persistence->params.tls_by_default
                          ? " (sslmode is verify-full because the server is on another machine)"
                          : "");
}

/* @return 0 when the socket is ready, -1 at the deadline. */
static int await(const wb_storage_session *s, short events, int64_t deadline)
{
    for (;;) {
        struct pollfd descriptor = { .fd = PQsocket(s->connection), .events = events };
        int64_t left = (deadline - s->host->now()) / 1000000;
        if (left <= 0)
            return -1;
        int ready = poll(&descriptor, 1, left > 60000 ? 60000 : (int)left);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return -1;
    }
}

static int connect_before(wb_storage_session *s, int64_t deadline, wb_error *error)
{
    /* libpq: behave as if told to write */
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
        if (await(s, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline) != 0)
            return s->host->fail(s->host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, ETIMEDOUT,
                                 "could not connect to PostgreSQL: no answer within "
                                 "connect_timeout");
        next = PQconnectPoll(s->connection);
    }
    return next == PGRES_POLLING_OK ? WB_OK : fail_connect(s, error);
}

static int connect_session(wb_storage_session *s, wb_error *error)
{
    const pgsql_params *params = &s->persistence->params;
    int64_t deadline =
        s->host->now() + s->persistence->config->connect_timeout * (int64_t)params->hosts;

    s->connection = PQconnectStartParams((const char *const *)params->keywords,
                                         (const char *const *)params->values, 0);
    if (!s->connection)
        return s->host->fail(s->host, error, WB_RETRY, WB_CAUSE_SERVER, 0, "out of memory");
    PQsetNoticeReceiver(s->connection, take_notice, s);
    PQsetErrorVerbosity(s->connection, PQERRORS_VERBOSE);
    if (PQstatus(s->connection) == CONNECTION_BAD)
        return fail_connect(s, error);
    int result = connect_before(s, deadline, error);
    PQsetErrorVerbosity(s->connection, PQERRORS_DEFAULT);
    return result;
}

int pgsql_session_connect(wb_persistence *persistence, wb_storage_session **ret_session,
                          wb_error *error)
{
    wb_storage_session *s = calloc(1, sizeof *s);
    if (!s)
        return persistence->host->fail(persistence->host, error, WB_RETRY, WB_CAUSE_SERVER, 0,
                                       "out of memory");
    s->persistence = persistence;
    s->host = persistence->host;
    int result = connect_session(s, error);
    if (result == WB_OK)
        *ret_session = s;
    else
        pgsql_session_close(s);
    return result;
}

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
#include "plugins/persistence/pgsql/pgsql-words.h"

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
        { "text", pgsql_words_of(notice) },
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

typedef struct verdict {
    int result; /* WB_OK: none yet */
    int cause;
    int64_t native_code;
} verdict;

/* What became of the servers that were tried. */
typedef struct report {
    const pgsql_params *params;
    verdict all;
    verdict server; /* which is being tried */
    size_t size;
    char text[900];
} report;

/* Of a server's addresses, the one that refused for good has the last word. */
static int note(report *r, int result, int cause, int64_t native_code, const char *text)
{
    const size_t room = sizeof r->text - r->size;
    const int size = snprintf(r->text + r->size, room, "%s%.*s", r->size ? "; " : "",
                              (int)strcspn(text, "\n"), text);
    r->size += size < (int)room ? (size_t)size : room - 1;
    if (r->server.result == WB_OK || (result == WB_FATAL && r->server.result != WB_FATAL))
        r->server = (verdict){ result, cause, native_code };
    return result;
}

/* Of several servers, waiting helps as long as it may help with one. */
static void end_server(report *r)
{
    if (r->all.result == WB_OK || r->all.result == WB_FATAL)
        r->all = r->server;
    r->server = (verdict){ .result = WB_OK };
}

/* One of several says which it is, as libpq does where it speaks itself. */
static int note_server(const wb_storage_session *s, report *r, int result, int cause,
                       int64_t native_code, const char *text)
{
    char line[512];
    const int is_one = r->params->servers.count == 1;
    const char *host = PQhost(s->connection);
    const char *port = PQport(s->connection);
    (void)snprintf(line, sizeof line, "server \"%s\", port %s: %.*s", host ? host : "",
                   port ? port : "", (int)strcspn(text, "\n"), text);
    return note(r, result, cause, native_code, is_one ? text : line);
}

static int note_refusal(const wb_storage_session *s, report *r)
{
    const char *message = PQerrorMessage(s->connection);
    char sqlstate[SQLSTATE_SIZE] = "";
    const char *text = find_sqlstate(message, sqlstate);
    const pgsql_refusal *refusal = pgsql_refusal_find(message);
    const char *remedy = refusal ? refusal->remedy : "";
    char line[512];

    if (text) {
        const pgsql_mapping *mapping = pgsql_map(sqlstate);
        const int result = mapping->own == WB_FATAL ? WB_FATAL : WB_NOT_CONNECTED;
        (void)snprintf(line, sizeof line, "%.*s (SQLSTATE %s)%s", (int)strcspn(text, "\n"), text,
                       sqlstate, remedy);
        return note_server(s, r, result, mapping->own_cause, pgsql_native_code(sqlstate), line);
    }
    if (PQconnectionNeedsPassword(s->connection))
        return note_server(s, r, WB_FATAL, WB_CAUSE_REFUSED, 0,
                           "the server asks for a password: set option \"password\"");
    while (isspace((unsigned char)*message))
        message++;
    (void)snprintf(line, sizeof line, "%.*s%s%s", (int)strcspn(message, "\n"), message, remedy,
                   r->params->tls_by_default
                       ? " (sslmode is verify-full because the server is on another machine)"
                       : "");
    return note(r, refusal ? refusal->result : WB_NOT_CONNECTED,
                refusal ? refusal->cause : WB_CAUSE_UNREACHABLE, 0, line);
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

static int connect_before(wb_storage_session *s, int64_t deadline, report *r)
{
    /* libpq: behave as if told to write */
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
        if (await(s, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline) != 0)
            return note_server(s, r, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, ETIMEDOUT,
                               "no answer within connect_timeout");
        next = PQconnectPoll(s->connection);
    }
    return next == PGRES_POLLING_OK ? WB_OK : note_refusal(s, r);
}

static int connect_to(wb_storage_session *s, const char *const *keywords,
                      const char *const *values, report *r)
{
    const int64_t deadline = s->host->now() + s->persistence->config->connect_timeout;

    PQfinish(s->connection); /* of the server before */
    s->connection = PQconnectStartParams(keywords, values, 0);
    if (!s->connection)
        return note(r, WB_RETRY, WB_CAUSE_SERVER, 0, "out of memory");
    PQsetNoticeReceiver(s->connection, take_notice, s);
    PQsetErrorVerbosity(s->connection, PQERRORS_VERBOSE);
    if (PQstatus(s->connection) == CONNECTION_BAD)
        return note_refusal(s, r);
    const int result = connect_before(s, deadline, r);
    /* whatever a handler does with PQerrorMessage(): without DETAIL, which quotes rows */
    PQsetErrorVerbosity(s->connection, PQERRORS_TERSE);
    return result;
}

static int connect_server(wb_storage_session *s, const pgsql_server *server, report *r)
{
    const pgsql_params *params = r->params;
    const char *keywords[PGSQL_PARAMS_MAX + 4];
    const char *values[PGSQL_PARAMS_MAX + 4];
    char addresses[PGSQL_ADDRESSES_MAX][PGSQL_ADDRESS_SIZE];
    const size_t count = pgsql_server_addresses(server, addresses);
    int result = WB_NOT_CONNECTED;

    /* nothing is known of it: libpq says what is wrong */
    if (!server->host && !server->address && !server->port)
        return connect_to(s, (const char *const *)params->keywords,
                          (const char *const *)params->values, r);
    for (size_t i = 0; i < (count ? count : 1) && result != WB_OK; i++) {
        pgsql_params_for(params, server, count ? addresses[i] : NULL, keywords, values);
        result = connect_to(s, keywords, values, r);
    }
    return result;
}

/* First the one that was right the last time: a silent one in front of it costs its time once. */
static int connect_one_of(wb_storage_session *s, const pgsql_params *params, wb_error *error)
{
    wb_persistence *p = s->persistence;
    const pgsql_servers *servers = &params->servers;
    const size_t first = atomic_load(&p->server);
    report r = { .params = params };

    for (size_t i = 0; i < servers->count; i++) {
        const size_t at = (first + i) % servers->count;
        if (connect_server(s, &servers->list[at], &r) == WB_OK) {
            atomic_store(&p->server, at);
            return WB_OK;
        }
        end_server(&r);
    }
    return s->host->fail(s->host, error, r.all.result, r.all.cause, r.all.native_code,
                         "could not connect to PostgreSQL: %s", r.text);
}

/* Where a service or the environment leads to is judged each time: libpq asks them each time, and
 * what was on this machine when the endpoint started may be on another now. */
static int connect_session(wb_storage_session *s, wb_error *error)
{
    wb_persistence *p = s->persistence;
    pgsql_params params;
    int result =
        pgsql_params_build(s->host, p->config, p->endpoint, &p->said_unverified, &params, error);
    if (result == WB_OK)
        result = connect_one_of(s, &params, error);
    pgsql_params_free(&params);
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

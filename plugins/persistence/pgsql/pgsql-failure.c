/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/persistence/pgsql/pgsql-map.h"
#include "plugins/persistence/pgsql/pgsql-session.h"
#include "plugins/persistence/pgsql/pgsql-words.h"

/* Each server writes the severity a second time, untranslated; PgBouncer does not when it speaks for
 * itself. A pooler's word is worth no more than a broken connection: the server's is lost. */
static int is_end_of_session(const PGresult *result, int *ret_of_server)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    *ret_of_server = severity != NULL;
    return !severity || strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0;
}

static int is_end_of_commit(const pgsql_step *step)
{
    return step->kind == PGSQL_STEP_COMMIT || step->kind == PGSQL_STEP_SYNC;
}

/* The session ended: may a COMMIT have been executed? A server says so after its last complete
 * answer: what it reports for a step in front of the COMMIT, the COMMIT never was executed. A
 * pooler may have lost such answers. */
static int class_of_end(const wb_storage_session *s, const pgsql_step *step, int of_server)
{
    const int may_be = !of_server || s->is_pooled || is_end_of_commit(step);
    return s->exchange.commits && may_be ? WB_IN_DOUBT : WB_NOT_CONNECTED;
}

static int is_of_handler(const pgsql_step *step)
{
    return step->kind == PGSQL_STEP_DEFERRED || step->kind == PGSQL_STEP_PREPARE;
}

/* An error that is answered to COMMIT has rolled everything back, for sure: what failed was
 * deferred to it by a handler's statement, so that its class is that of one. */
static void classify(wb_sql_failure *failure, const pgsql_step *step, const char *sqlstate)
{
    const pgsql_mapping *mapping = pgsql_map(sqlstate);

    if (is_of_handler(step) || step->kind == PGSQL_STEP_COMMIT) {
        failure->result = mapping->handler;
        failure->cause = mapping->handler_cause;
    } else {
        failure->result = mapping->own;
        failure->cause = mapping->own_cause;
    }
    failure->native_code = pgsql_native_code(sqlstate);
    /* the server's trouble is no message's, whoever met it first */
    failure->item = failure->cause == WB_CAUSE_SERVER ? WB_SQL_NO_ITEM : step->item;
}

/* Whether a prepared statement was gone, or was planned for another table than there is
 * now: nothing is wrong with the message, and prepared anew it works. If it does not, it was
 * prepared a moment ago, and the failure counts. */
static int is_stale_plan(const pgsql_step *step, const char *sqlstate)
{
    return step->is_prepared && (strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "0A000") == 0);
}

void pgsql_failure_record(wb_storage_session *s, const pgsql_step *step, const PGresult *result)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    wb_sql_failure *failure = &s->sql.failure;
    int of_server;

    if (failure->result != WB_OK)
        return;
    if (!sqlstate) { /* libpq made it up: the connection broke */
        pgsql_failure_lost(s, PQresultErrorMessage(result));
        return;
    }
    if (step->kind == PGSQL_STEP_GUARD && strcmp(sqlstate, PGSQL_GUARD_SQLSTATE) == 0) {
        (void)pgsql_guard_found(s);
        return;
    }
    if (step->kind == PGSQL_STEP_OWN && strcmp(sqlstate, PGSQL_READ_ONLY_SQLSTATE) == 0) {
        pgsql_words_describe(result, failure->text, sizeof failure->text);
        if (pgsql_guard_met_read_only(s, failure->text))
            return;
    }
    classify(failure, step, sqlstate);
    pgsql_words_describe(result, failure->text, sizeof failure->text);
    if (is_of_handler(step) && is_stale_plan(step, sqlstate)) {
        failure->result = WB_ABORT;
        pgsql_cache_distrust(&s->defer.cache);
    }
    if (is_end_of_session(result, &of_server)) {
        failure->result = class_of_end(s, step, of_server);
        failure->cause = WB_CAUSE_UNREACHABLE;
        failure->item = WB_SQL_NO_ITEM;
    }
    if (failure->result == WB_NOT_CONNECTED || failure->result == WB_IN_DOUBT)
        s->sql.state = WB_SQL_LOST;
}

/* Libpq keeps what servers said, DETAIL too, in front of what it says itself, and continues a sentence
 * of its own behind a tab. */
static const char *find_last_sentence(const char *reason)
{
    const char *last = reason;
    for (const char *line = reason; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (*line && !isspace((unsigned char)*line))
            last = line;
    }
    return last;
}

/* "FATAL:  ..." is the server's, "DETAIL:  ..." its, too. */
static int is_of_server(const char *sentence)
{
    const size_t word = strcspn(sentence, ": \n");
    return strncmp(sentence + word, ":  ", 3) == 0;
}

/* The last of what libpq says, without line break. */
static void copy_reason(char *text, size_t size, const char *reason)
{
    reason = find_last_sentence(reason);
    if (!*reason || isspace((unsigned char)*reason) || is_of_server(reason))
        reason = "the connection was lost";
    (void)snprintf(text, size, "%s", reason);
    for (size_t end = strlen(text); end && isspace((unsigned char)text[end - 1]); end--)
        text[end - 1] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
}

void pgsql_failure_lost(wb_storage_session *s, const char *reason)
{
    wb_sql_failure *failure = &s->sql.failure;

    if (failure->result == WB_OK) {
        failure->result = s->exchange.commits ? WB_IN_DOUBT : WB_NOT_CONNECTED;
        failure->cause = WB_CAUSE_UNREACHABLE;
        failure->native_code = 0;
        failure->item = WB_SQL_NO_ITEM;
        copy_reason(failure->text, sizeof failure->text,
                    reason ? reason : PQerrorMessage(s->connection));
    }
    s->sql.state = WB_SQL_LOST;
}

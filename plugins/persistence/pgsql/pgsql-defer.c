/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-defer.h"

#include <ctype.h>
#include <libpq-events.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "plugins/common/sql/failed.h"
#include "plugins/common/sql/transaction.h"
#include "plugins/persistence/pgsql/pgsql-session.h"

/* The protocol counts parameters with 16 bits. */
#define PARAMETERS_MAX 65535

/* ---- what may be deferred -------------------------------------------------- */

static const char *skip_comment(const char *at)
{
    if (at[0] == '-' && at[1] == '-')
        return at + strcspn(at, "\n");
    int depth = 0; /* the server's comments nest */
    do {
        if (at[0] == '/' && at[1] == '*') {
            depth++;
            at += 2;
        } else if (at[0] == '*' && at[1] == '/') {
            depth--;
            at += 2;
        } else {
            at++;
        }
    } while (depth && *at);
    return at;
}

static const char *first_word(const char *text, size_t *ret_size)
{
    for (;;) {
        while (isspace((unsigned char)*text) || *text == ';' || *text == '(')
            text++;
        if ((text[0] != '-' || text[1] != '-') && (text[0] != '/' || text[1] != '*'))
            break;
        text = skip_comment(text);
    }
    *ret_size = 0;
    while (isalpha((unsigned char)text[*ret_size]))
        ++*ret_size;
    return text;
}

static int is_one_of(const char *word, size_t size, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == size && strncasecmp(word, words[i], size) == 0)
            return 1;
    return 0;
}

#define IS_ONE_OF(word, size, words) is_one_of(word, size, words, sizeof words / sizeof words[0])

/* The transaction is the framework's, and a copy needs somebody who feeds it. The
 * extended protocol takes one statement a text, so the first word decides. */
static const char *refusal_of(const char *statement)
{
    static const char *const refused[] = { "abort",   "begin",   "commit",   "copy",      "end",
                                           "prepare", "release", "rollback", "savepoint", "start" };
    size_t size;
    const char *word = first_word(statement, &size);
    if (!*word)
        return "it is empty";
    if (IS_ONE_OF(word, size, refused))
        return "transaction control and COPY cannot be deferred";
    return NULL;
}

/* What a handler says in SQL. What triggers do, and functions called in changing rows, is not looked for: they
 * are in most of what is deferred. */
static pgsql_leaves leaves_of(const char *statement)
{
    static const char *const changes[] = { "delete", "insert", "merge", "update" };
    static const char *const reads[] = { "select", "table", "values", "with" };
    size_t size;
    const char *word = first_word(statement, &size);

    if (strcasestr(statement, "set_config"))
        return PGSQL_LEAVES_SETTINGS;
    if (IS_ONE_OF(word, size, changes))
        return PGSQL_LEAVES_NOTHING;
    return IS_ONE_OF(word, size, reads) ? PGSQL_LEAVES_UNSEEN : PGSQL_LEAVES_SETTINGS;
}

static const char *refusal_of_params(const wb_pgsql_params *params)
{
    if (params->count < 0 || params->count > PARAMETERS_MAX)
        return "the number of parameters is out of range";
    if (params->count && !params->values)
        return "it has parameters but no values";
    for (int i = 0; params->formats && i < params->count; i++)
        if (params->formats[i] && params->values[i] &&
            (!params->lengths || params->lengths[i] < 0))
            return "a binary value needs a length";
    return NULL;
}

static int refuse(const wb_storage_session *s, const char *reason)
{
    s->host->log(s->host, WB_LOG_ERROR, "deferred statement refused",
                 (const wb_field[]){ { "reason", reason } }, 1);
    return WB_REJECT;
}

/* ---- copying --------------------------------------------------------------- */

static size_t size_of_value(const wb_pgsql_params *params, int i)
{
    if (!params->values[i])
        return 0;
    if (params->formats && params->formats[i])
        return (size_t)params->lengths[i];
    return strlen(params->values[i]) + 1;
}

/* One allocation for all parameters: pointers, then lengths, formats, types, bytes. */
static int copy_params(pgsql_defer *d, pgsql_deferred *deferred, const wb_pgsql_params *params)
{
    const size_t count = (size_t)params->count;
    const size_t pointers = count * sizeof(char *);
    const size_t numbers = count * sizeof(int);
    size_t total = pointers + 3 * numbers;

    for (int i = 0; i < params->count; i++)
        total += size_of_value(params, i);
    char *memory = pgsql_arena_alloc(&d->arena, total);
    if (!memory)
        return -1;
    const char **values = (const char **)(void *)memory;
    int *lengths = (int *)(void *)(memory + pointers);
    char *bytes = memory + pointers + 3 * numbers;
    for (int i = 0; i < params->count; i++) {
        size_t size = size_of_value(params, i);
        lengths[i] = (int)size;
        values[i] = params->values[i] ? bytes : NULL;
        if (size)
            memcpy(bytes, params->values[i], size);
        bytes += size;
    }
    deferred->count = params->count;
    deferred->values = values;
    if (params->formats) {
        deferred->lengths = lengths;
        deferred->formats = memcpy(memory + pointers + numbers, params->formats, numbers);
    }
    if (params->types)
        deferred->types = memcpy(memory + pointers + 2 * numbers, params->types, numbers);
    return 0;
}

/* Batches repeat one statement: its text is kept once. */
static void copy_text(pgsql_defer *d, pgsql_deferred *deferred, const char *statement)
{
    if (d->last && strcmp(d->last->text, statement) == 0) {
        deferred->text = d->last->text;
        deferred->leaves = d->last->leaves;
        return;
    }
    const size_t size = strlen(statement) + 1;
    char *copy = pgsql_arena_alloc(&d->arena, size);
    deferred->text = copy ? memcpy(copy, statement, size) : NULL;
    deferred->leaves = leaves_of(statement);
}

/* The session's copy of the text, or that of the batch. */
static void keep_text(wb_storage_session *s, pgsql_deferred *deferred, const char *statement,
                      const wb_pgsql_params *params)
{
    pgsql_cached *cached = NULL;
    if (s->prepared)
        cached = pgsql_cache_use(&s->defer.cache, statement, params->count, params->types);
    deferred->cached = cached;
    if (!cached) {
        copy_text(&s->defer, deferred, statement);
        return;
    }
    if (cached->uses == 1)
        cached->leaves = leaves_of(statement);
    deferred->text = cached->text;
    deferred->leaves = cached->leaves;
}

/* Noted, so that a handler that overlooks it does not commit without its statement. Another
 * message would have met it, too. */
static int refuse_for_memory(wb_storage_session *s)
{
    if (s->sql.failure.result == WB_OK)
        s->sql.failure = (wb_sql_failure){ .result = WB_RETRY, .cause = WB_CAUSE_SERVER,
                                      .item = WB_SQL_NO_ITEM,
                                      .text = "out of memory for a deferred statement" };
    s->sql.flush_failed = 1;
    return WB_RETRY;
}

static int api_defer(void *session, size_t item, const char *statement,
                     const wb_pgsql_params *params)
{
    static const wb_pgsql_params none = { 0 };
    wb_storage_session *s = session;
    pgsql_defer *d = &s->defer;

    if (s->sql.state == WB_SQL_LOST)
        return WB_NOT_CONNECTED;
    if (s->sql.state != WB_SQL_OPEN)
        return refuse(s, "no transaction is open");
    if (!params)
        params = &none;
    const char *refusal = statement ? refusal_of(statement) : "it is empty";
    if (!refusal)
        refusal = refusal_of_params(params);
    if (refusal)
        return refuse(s, refusal);
    pgsql_deferred *deferred = pgsql_arena_alloc(&d->arena, sizeof *deferred);
    if (!deferred)
        return refuse_for_memory(s);
    *deferred = (pgsql_deferred){ .item = item };
    keep_text(s, deferred, statement, params);
    if (!deferred->text || (params->count && copy_params(d, deferred, params) != 0))
        return refuse_for_memory(s);
    if (d->last)
        d->last->next = deferred;
    else
        d->first = deferred;
    d->last = deferred;
    pgsql_guard_defer(s, deferred->leaves);
    return WB_OK;
}

/* ---- sending --------------------------------------------------------------- */

static void queue_preparation(wb_storage_session *s, const pgsql_deferred *deferred)
{
    pgsql_cached *cached = deferred->cached;
    const pgsql_step step = { .kind = PGSQL_STEP_PREPARE, .item = deferred->item,
                              .cached = cached };

    pgsql_cache_name(&s->defer.cache, cached);
    cached->is_sent = 1;
    pgsql_exchange_note(s, &step,
                        PQsendPrepare(s->connection, cached->name, cached->text, cached->count,
                                      cached->types));
}

static void queue_one(wb_storage_session *s, const pgsql_deferred *d)
{
    pgsql_cached *cached = d->cached;
    const pgsql_step step = { .kind = PGSQL_STEP_DEFERRED,
                              .is_prepared = cached && cached->is_ready,
                              .item = d->item };
    int sent;

    if (cached && cached->uses > 1 && !cached->is_ready && !cached->is_sent)
        queue_preparation(s, d);
    if (cached && (cached->is_ready || cached->is_sent))
        sent = PQsendQueryPrepared(s->connection, cached->name, d->count, d->values, d->lengths,
                                   d->formats, 1);
    else
        sent = PQsendQueryParams(s->connection, d->text, d->count, d->types, d->values, d->lengths,
                                 d->formats, 1);
    pgsql_exchange_note(s, &step, sent);
}

void pgsql_defer_queue(wb_storage_session *s)
{
    if (s->defer.first)
        pgsql_guard_queue_encoding(s);
    for (const pgsql_deferred *d = s->defer.first; d && !s->exchange.broken; d = d->next) {
        queue_one(s, d);
        if (d->leaves == PGSQL_LEAVES_SETTINGS && d->next)
            pgsql_guard_queue_encoding_behind(s);
    }
}

void pgsql_defer_reset(wb_storage_session *s)
{
    pgsql_arena_reset(&s->defer.arena);
    s->defer.first = s->defer.last = NULL;
}

void pgsql_defer_free(pgsql_defer *defer)
{
    pgsql_arena_free(&defer->arena);
    pgsql_cache_free(&defer->cache);
    memset(defer, 0, sizeof *defer);
}

/* ---- the plain connection --------------------------------------------------- */

/* A failed transaction answers nothing but errors until it is rolled back, to a savepoint: what
 * succeeds tells that the failure of before is over. */
static void take_handlers_result(wb_storage_session *s, const PGresult *result)
{
    const pgsql_step step = { .kind = PGSQL_STEP_DEFERRED, .item = s->sql.last_item };
    const ExecStatusType status = PQresultStatus(result);

    if (s->sql.flush_failed)
        return;
    if (status == PGRES_COMMAND_OK)
        pgsql_guard_watch(s, result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        s->sql.failure.result = WB_OK;
    /* one without a code is libpq's own: a misuse, or the end of the connection */
    else if (status == PGRES_FATAL_ERROR && PQresultErrorField(result, PG_DIAG_SQLSTATE))
        pgsql_failure_record(s, &step, result);
}

/* A handler closed the connection, or had it made anew: what it did before, and has not ended, is rolled back. */
static void take_end(wb_storage_session *s, const char *text)
{
    s->sql.failure.result = WB_OK; /* this outranks what failed before */
    (void)wb_sql_note(s, WB_REJECT, WB_CAUSE_OTHER, s->sql.last_item, text);
    s->sql.state = WB_SQL_LOST;
}

/* Sees every result of the connection, and so the SQLSTATE of what failed in a handler:
 * a deadlock there is not the message's fault, nor is a full disk. And its end, by a handler or by us. */
static int watch(PGEventId id, void *info, void *argument)
{
    wb_storage_session *s = argument;
    if (id == PGEVT_RESULTCREATE && s->sql.handed_out)
        take_handlers_result(s, ((const PGEventResultCreate *)info)->result);
    if (id == PGEVT_CONNDESTROY)
        s->connection = NULL;
    if (id == PGEVT_CONNDESTROY && s->sql.handed_out)
        take_end(s, "the handler closed the connection");
    if (id == PGEVT_CONNRESET && s->sql.handed_out)
        take_end(s, "the handler reset the connection");
    return 1;
}

/* BEGIN, if it is due, and what has to be known before a handler gets the connection, which BEGIN asks
 * for by itself from the second time on. */
static void send_deferred(wb_storage_session *s)
{
    const int is_due = s->sql.begin_is_due;
    const int is_new = pgsql_guard_is_new(s) && !(is_due && s->guard.initial.rows);

    if ((!s->defer.first && !is_new && !is_due) || s->sql.failure.result != WB_OK)
        return;
    s->sql.handed_out = 0;
    pgsql_exchange_start(s);
    wb_sql_queue_due_begin(s);
    if (is_new) /* before anybody sets another user */
        pgsql_guard_queue_first(s);
    pgsql_defer_queue(s);
    s->sql.flush_failed = pgsql_exchange_run(s, NULL) != WB_OK;
    if (PQtransactionStatus(s->connection) != PQTRANS_IDLE)
        s->sql.begin_is_due = 0;
    pgsql_defer_reset(s);
}

/* Without a transaction nobody may write on it. */
static PGconn *api_connection(void *session, size_t item)
{
    wb_storage_session *s = session;

    if (s->sql.state != WB_SQL_OPEN)
        return NULL;
    send_deferred(s);
    if (s->sql.state == WB_SQL_LOST || s->sql.begin_is_due)
        return NULL;
    if (!s->watched)
        s->watched = PQregisterEventProc(s->connection, watch, "waybill", s);
    pgsql_guard_hand_out(s, item);
    s->sql.handed_out = 1;
    s->sql.last_item = item;
    return s->connection;
}

const wb_pgsql_api pgsql_api = {
    .struct_size = sizeof(wb_pgsql_api),
    .connection = api_connection,
    .defer = api_defer,
};

const void *pgsql_interface(wb_storage_session *s, const char *name)
{
    if (strcmp(name, WB_FAILED_INTERFACE) == 0)
        return s->sql.outbox->statements[WB_SQL_FAILED_PUT] ? &wb_sql_failed : NULL;
    return strcmp(name, WB_PGSQL_INTERFACE) == 0 ? &pgsql_api : NULL;
}

/* ---- the check ---------------------------------------------------------------- */

static int found(wb_storage_session *s, int result, const char *text)
{
    return wb_sql_note(s, result, WB_CAUSE_OTHER, s->sql.last_item, text);
}

int pgsql_defer_inspect(wb_storage_session *s)
{
    /* before all else: what came after it, the end of the connection too, hides it from the host */
    if (s->guard.is_ended)
        return pgsql_guard_found(s);
    if (!s->sql.handed_out || s->sql.state == WB_SQL_LOST)
        return s->sql.failure.result;
    if (PQstatus(s->connection) == CONNECTION_BAD) {
        s->sql.failure.result = WB_OK;
        pgsql_failure_lost(s, NULL);
        return s->sql.failure.result;
    }
    /* its message was promised that this is its failure, even if a handler rolled back to
     * a savepoint since */
    if (s->sql.flush_failed)
        return s->sql.failure.result;
    if (PQpipelineStatus(s->connection) != PQ_PIPELINE_OFF)
        return found(s, WB_REJECT, "the handler left the connection in pipeline mode");
    switch (PQtransactionStatus(s->connection)) {
    case PQTRANS_INTRANS: /* an error it rolled back to a savepoint is no failure */
        s->sql.failure.result = WB_OK;
        if (s->guard.savepoints.went_back)
            return found(s, WB_ABORT, WB_COMMON_WENT_BACK);
        return WB_OK;
    case PQTRANS_INERROR:
        return s->sql.failure.result != WB_OK
                   ? s->sql.failure.result
                   : found(s, WB_RETRY, "the handler left the transaction failed");
    case PQTRANS_IDLE: return found(s, WB_REJECT, "the handler ended the transaction");
    default: return found(s, WB_REJECT, "the handler left results unread");
    }
}

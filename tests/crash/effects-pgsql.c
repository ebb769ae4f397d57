/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler module on PostgreSQL: each of the three ways to write business data.
 */
#include "config.h"

#include <waybill/pgsql.h>

#include <stdlib.h>
#include <unistd.h>

#include "tests/crash/effects.h"

#define ADD_EFFECT                                                                                 \
    "insert into effects (msg_id, seq, body_hash, variant, pid, attempt)"                          \
    " values ($1, $2, $3, $4, $5, $6)"
#define ADD_ENTRY "insert into ledger (msg_id, account, amount) values ($1, $2, $3)"

/* An effect's columns as text. */
typedef struct columns {
    char seq[12], amount[12], pid[12], attempt[12];
} columns;

static columns columns_of(const effect *e)
{
    columns c;
    (void)snprintf(c.seq, sizeof c.seq, "%d", e->seq);
    (void)snprintf(c.amount, sizeof c.amount, "%d", e->amount);
    (void)snprintf(c.pid, sizeof c.pid, "%d", (int)getpid());
    (void)snprintf(c.attempt, sizeof c.attempt, "%u", e->message->attempt);
    return c;
}

static int execute(wb_context *ctx, const char *statement, const wb_pgsql_params *params)
{
    PGconn *db = wb_pgsql(ctx);
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no connection");
    PGresult *result =
        PQexecParams(db, statement, params->count, NULL, params->values, NULL, NULL, 0);
    int r = WB_OK;
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        r = wb_fail(ctx, WB_RETRY, "%s", PQresultErrorMessage(result));
    PQclear(result);
    return r;
}

typedef int (*writer)(wb_context *ctx, const char *statement, const wb_pgsql_params *params);

static int write_one(wb_context *ctx, const wb_message *message, const char *variant, writer write)
{
    effect e;
    int r = effect_read(ctx, message, &e);
    if (r != WB_OK)
        return r;
    columns c = columns_of(&e);
    r = write(ctx, ADD_EFFECT,
              WB_PGSQL_TEXT(message->id, c.seq, e.hash, variant, c.pid, c.attempt));
    if (r != WB_OK)
        return r;
    effect_between_writes();
    r = write(ctx, ADD_ENTRY, WB_PGSQL_TEXT(message->id, e.key, c.amount));
    return r == WB_OK ? effect_send(ctx, &e, 0) : r;
}

static int plain(wb_context *ctx, const wb_message *message)
{
    return write_one(ctx, message, "plain", execute);
}

static int deferred(wb_context *ctx, const wb_message *message)
{
    return write_one(ctx, message, "deferred", wb_pgsql_defer);
}

/* ---- all messages of a batch with one statement a table ------------------- */

/* Array literals of the columns. Ids and keys of this suite need no quoting. */
typedef struct arrays {
    char *ids, *seqs, *hashes, *attempts, *keys, *amounts;
    size_t size;
} arrays;

static void append(char *array, size_t size, const char *value)
{
    size_t used = strlen(array);
    (void)snprintf(array + used, size - used, "%s%s", used > 1 ? "," : "", value);
}

static int arrays_open(arrays *a, size_t count)
{
    char **all[] = { &a->ids, &a->seqs, &a->hashes, &a->attempts, &a->keys, &a->amounts };
    a->size = count * 64 + 3;
    for (size_t i = 0; i < 6; i++) {
        *all[i] = malloc(a->size);
        if (!*all[i])
            return WB_RETRY;
        strcpy(*all[i], "{");
    }
    return WB_OK;
}

static void arrays_add(arrays *a, const effect *e)
{
    columns c = columns_of(e);
    append(a->ids, a->size, e->message->id);
    append(a->seqs, a->size, c.seq);
    append(a->hashes, a->size, e->hash);
    append(a->attempts, a->size, c.attempt);
    append(a->keys, a->size, e->key);
    append(a->amounts, a->size, c.amount);
}

static void arrays_seal(arrays *a)
{
    char *all[] = { a->ids, a->seqs, a->hashes, a->attempts, a->keys, a->amounts };
    for (size_t i = 0; i < 6; i++)
        strcat(all[i], "}");
}

static void arrays_close(arrays *a)
{
    free(a->ids);
    free(a->seqs);
    free(a->hashes);
    free(a->attempts);
    free(a->keys);
    free(a->amounts);
}

static int write_arrays(wb_context *ctx, const arrays *a)
{
    char pid[12];
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    int r = execute(ctx,
                    "insert into effects (msg_id, seq, body_hash, variant, pid, attempt)"
                    " select i, s, h, 'batch', $5::int, a"
                    " from unnest($1::text[], $2::int[], $3::text[], $4::int[]) as t (i, s, h, a)",
                    WB_PGSQL_TEXT(a->ids, a->seqs, a->hashes, a->attempts, pid));
    if (r != WB_OK)
        return r;
    effect_between_writes();
    return execute(ctx,
                   "insert into ledger (msg_id, account, amount)"
                   " select * from unnest($1::text[], $2::text[], $3::int[])",
                   WB_PGSQL_TEXT(a->ids, a->keys, a->amounts));
}

static int batch(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    arrays a = { 0 };
    effect *effects = calloc(count, sizeof *effects);
    int r = effects ? arrays_open(&a, count) : WB_RETRY;

    for (size_t i = 0; i < count && r == WB_OK; i++) {
        r = effect_read(ctx, messages[i], &effects[i]);
        if (r == WB_OK)
            arrays_add(&a, &effects[i]);
    }
    if (r == WB_OK) {
        arrays_seal(&a);
        r = write_arrays(ctx, &a);
    }
    for (size_t i = 0; i < count && r == WB_OK; i++)
        r = effect_send(ctx, &effects[i], count > 1);
    arrays_close(&a);
    free(effects);
    return r;
}

WB_HANDLERS(WB_HANDLER("Crash.Plain", plain), WB_HANDLER("Crash.Deferred", deferred),
            WB_BATCH_HANDLER("Crash.Batch", batch))

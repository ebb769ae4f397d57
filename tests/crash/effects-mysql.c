/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler module on MySQL: each of the three ways to write business data. Ids, keys and
 * hashes of this suite need no quoting.
 */
#include "config.h"

#include <waybill/mysql.h>

#include <stdlib.h>
#include <unistd.h>

#include "tests/crash/effects.h"

#define ADD_EFFECT "insert into effects (msg_id, seq, body_hash, variant, pid, attempt) values "
#define ADD_ENTRY "insert into ledger (msg_id, account, amount) values "
#define ROW_MAX 700 /* bytes of one */

static int execute(wb_context *ctx, const char *statement)
{
    MYSQL *db = wb_mysql(ctx);
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no connection");
    if (mysql_real_query(db, statement, strlen(statement)) != 0)
        return wb_fail(ctx, WB_RETRY, "%s", mysql_error(db));
    return WB_OK;
}

/* ---- statements, as text ----------------------------------------------------- */

static size_t effect_row(char *row, const effect *e, const char *variant)
{
    return (size_t)snprintf(row, ROW_MAX, "('%s', %d, '%s', '%s', %d, %u)", e->message->id, e->seq,
                            e->hash, variant, (int)getpid(), e->message->attempt);
}

static size_t entry_row(char *row, const effect *e, const char *variant)
{
    (void)variant;
    return (size_t)snprintf(row, ROW_MAX, "('%s', '%s', %d)", e->message->id, e->key, e->amount);
}

typedef size_t (*row_writer)(char *row, const effect *e, const char *variant);

/* One insert of a row an effect. */
static int insert(wb_context *ctx, const char *head, row_writer write, const effect *effects,
                  size_t count, const char *variant)
{
    char *text = malloc(strlen(head) + count * (ROW_MAX + 1) + 1);
    if (!text)
        return wb_fail(ctx, WB_RETRY, "no memory");
    strcpy(text, head);
    size_t used = strlen(head);
    for (size_t i = 0; i < count; i++) {
        if (i)
            text[used++] = ',';
        used += write(text + used, &effects[i], variant);
    }
    int r = execute(ctx, text);
    free(text);
    return r;
}

static int write_all(wb_context *ctx, const effect *effects, size_t count, const char *variant)
{
    int r = insert(ctx, ADD_EFFECT, effect_row, effects, count, variant);
    if (r != WB_OK)
        return r;
    effect_between_writes();
    return insert(ctx, ADD_ENTRY, entry_row, effects, count, variant);
}

/* ---- the handlers ------------------------------------------------------------ */

static int plain(wb_context *ctx, const wb_message *message)
{
    effect e;
    int r = effect_read(ctx, message, &e);
    if (r == WB_OK)
        r = write_all(ctx, &e, 1, "plain");
    return r == WB_OK ? effect_send(ctx, &e, 0) : r;
}

static int defer_all(wb_context *ctx, const effect *e)
{
    char seq[12], amount[12], pid[12], attempt[12];
    (void)snprintf(seq, sizeof seq, "%d", e->seq);
    (void)snprintf(amount, sizeof amount, "%d", e->amount);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    (void)snprintf(attempt, sizeof attempt, "%u", e->message->attempt);
    int r = wb_mysql_defer(ctx, ADD_EFFECT "(?, ?, ?, 'deferred', ?, ?)",
                           WB_MYSQL_TEXT(e->message->id, seq, e->hash, pid, attempt));
    if (r != WB_OK)
        return r;
    effect_between_writes();
    return wb_mysql_defer(ctx, ADD_ENTRY "(?, ?, ?)",
                          WB_MYSQL_TEXT(e->message->id, e->key, amount));
}

static int deferred(wb_context *ctx, const wb_message *message)
{
    effect e;
    int r = effect_read(ctx, message, &e);
    if (r == WB_OK)
        r = defer_all(ctx, &e);
    return r == WB_OK ? effect_send(ctx, &e, 0) : r;
}

static int batch(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    effect *effects = calloc(count, sizeof *effects);
    int r = effects ? WB_OK : WB_RETRY;
    for (size_t i = 0; i < count && r == WB_OK; i++)
        r = effect_read(ctx, messages[i], &effects[i]);
    if (r == WB_OK)
        r = write_all(ctx, effects, count, "batch");
    for (size_t i = 0; i < count && r == WB_OK; i++)
        r = effect_send(ctx, &effects[i], count > 1);
    free(effects);
    return r;
}

WB_HANDLERS(WB_HANDLER("Crash.Plain", plain), WB_HANDLER("Crash.Deferred", deferred),
            WB_BATCH_HANDLER("Crash.Batch", batch))

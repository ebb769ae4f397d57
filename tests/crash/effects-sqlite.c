/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler module on SQLite: one message a call, and all messages of a batch in one call.
 */
#include "config.h"

#include <waybill/sqlite.h>

#include <unistd.h>

#include "tests/crash/effects.h"

static int run(wb_context *ctx, sqlite3_stmt *statement)
{
    int r = WB_OK;
    if (sqlite3_step(statement) != SQLITE_DONE)
        r = wb_fail(ctx, WB_RETRY, "%s", sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_finalize(statement);
    return r;
}

static int add_effect(wb_context *ctx, sqlite3 *db, const effect *e, const char *variant)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db,
                           "insert into effects (msg_id, seq, body_hash, variant, pid, attempt)"
                           " values (?1, ?2, ?3, ?4, ?5, ?6)",
                           -1, &statement, NULL) != SQLITE_OK)
        return wb_fail(ctx, WB_RETRY, "%s", sqlite3_errmsg(db));
    sqlite3_bind_text(statement, 1, e->message->id, (int)e->message->id_size, SQLITE_STATIC);
    sqlite3_bind_int(statement, 2, e->seq);
    sqlite3_bind_text(statement, 3, e->hash, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, variant, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 5, (int)getpid());
    sqlite3_bind_int64(statement, 6, e->message->attempt);
    return run(ctx, statement);
}

static int add_entry(wb_context *ctx, sqlite3 *db, const effect *e)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, "insert into ledger (msg_id, account, amount) values (?1, ?2, ?3)", -1,
                           &statement, NULL) != SQLITE_OK)
        return wb_fail(ctx, WB_RETRY, "%s", sqlite3_errmsg(db));
    sqlite3_bind_text(statement, 1, e->message->id, (int)e->message->id_size, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, e->key, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 3, e->amount);
    return run(ctx, statement);
}

static int write_one(wb_context *ctx, const wb_message *message, const char *variant, int grouped)
{
    effect e;
    sqlite3 *db = wb_sqlite(ctx);
    int r = effect_read(ctx, message, &e);
    if (r != WB_OK)
        return r;
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no connection");
    if ((r = add_effect(ctx, db, &e, variant)) != WB_OK)
        return r;
    effect_between_writes();
    if ((r = add_entry(ctx, db, &e)) != WB_OK)
        return r;
    return effect_send(ctx, &e, grouped);
}

static int plain(wb_context *ctx, const wb_message *message)
{
    return write_one(ctx, message, "plain", 0);
}

static int batch(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    int r = WB_OK;
    for (size_t i = 0; i < count && r == WB_OK; i++)
        r = write_one(ctx, messages[i], "batch", count > 1);
    return r;
}

WB_HANDLERS(WB_HANDLER("Crash.Plain", plain), WB_BATCH_HANDLER("Crash.Batch", batch))

/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that handles no message: each line of its standard input is an order, "KEY TEXT". Its
 * row and the event that tells of it are committed together, and the same key once.
 *
 *   cc sessions.c $(pkg-config --cflags --libs libwaybill sqlite3) -o sessions
 *   waybill install -c shop.conf && ./sessions shop.conf <orders
 *
 * The endpoint of shop.conf has the sqlite persistence and outbox = { enabled = true; }.
 */
#include <stdio.h>
#include <string.h>
#include <waybill/session.h>
#include <waybill/sqlite.h>

#define TABLE "create table if not exists placed (key text primary key, text text) strict"
#define INSERT "insert into placed values (?1, ?2)"

/* What it does with the database is what a handler would do. */
static int place_order(wb_context *ctx, const char *key, const char *text)
{
    sqlite3 *db = wb_sqlite(ctx);
    sqlite3_stmt *insert = NULL;
    if (!db)
        return wb_fail(ctx, WB_REJECT, "the endpoint has no SQLite database, or it is away");
    int done = sqlite3_exec(db, TABLE, NULL, NULL, NULL) == SQLITE_OK &&
               sqlite3_prepare_v2(db, INSERT, -1, &insert, NULL) == SQLITE_OK &&
               sqlite3_bind_text(insert, 1, key, -1, SQLITE_STATIC) == SQLITE_OK &&
               sqlite3_bind_text(insert, 2, text, -1, SQLITE_STATIC) == SQLITE_OK &&
               sqlite3_step(insert) == SQLITE_DONE;
    sqlite3_finalize(insert);
    if (!done)
        return wb_fail(ctx, WB_RETRY, "could not write the order: %s", sqlite3_errmsg(db));
    return wb_publish(ctx, &(wb_outgoing){ .type = "Shop.OrderPlaced", .body = text, .body_size = WB_TEXT });
}

/* A result of place_order() need not be looked at: the commit knows it, too. */
static int commit_order(wb_endpoint *shop, const char *key, const char *text, wb_reason *reason)
{
    wb_session *session;
    const wb_session_options options = { .id = key, .id_size = WB_TEXT };
    int result = wb_session_open(shop, &options, sizeof options, &session, reason);
    if (result != WB_OK)
        return result;
    (void)place_order(wb_session_context(session), key, text);
    result = wb_session_commit(session, reason);
    wb_session_close(session);
    return result;
}

static void answer(const char *key, int result, const wb_reason *reason)
{
    if (result == WB_OK)
        printf("%s: placed\n", key);
    else if (reason->cause == WB_CAUSE_DUPLICATE)
        printf("%s: was placed before\n", key);
    else
        printf("%s: %s: %s\n", key, result == WB_IN_DOUBT ? "ask again" : "not placed", reason->text);
}

static void write_log(void *argument, int level, const char *line, size_t size)
{
    (void)level;
    fprintf(argument, "%.*s\n", (int)size, line);
}

int main(int argc, char **argv)
{
    char line[1024];
    wb_reason reason;
    wb_endpoint *shop;
    wb_endpoint_options options = { .config = argc > 1 ? argv[1] : "shop.conf" };
    wb_log_to(write_log, stderr);
    if (wb_endpoint_open(&options, sizeof options, &shop, &reason) != WB_OK) {
        fprintf(stderr, "%s\n", reason.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        char *text = strchr(line, ' ');
        if (!text)
            continue;
        *text++ = '\0';
        answer(line, commit_order(shop, line, text, &reason), &reason);
    }
    wb_endpoint_close(shop);
    return 0;
}

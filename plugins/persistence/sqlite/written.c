/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that programs write in SQL (waybill/sys/written.h): they insert into views, whose triggers
 * check what they write and fill the table that is read here. The file has one writer at a time, so that
 * the order of the numbers is that of the commits.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/common/sqlite/lockfile.h"
#include "plugins/persistence/sqlite/delayed.h"
#include "plugins/persistence/sqlite/persistence.h"

#define FETCH "fetch what programs wrote"
#define SETTLE "remove what programs wrote and was sent"
#define WRITE "write a message"
#define CLAIM "claim a message"
#define COUNT "count what programs wrote"
#define MICROSECOND 1000

/* ---- the installation ------------------------------------------------------------------- */

#define NOW "cast((julianday('now') - 2440587.5) * 86400000 as integer)"
/* WB_WRITTEN_HEADERS_SIZE_MAX, WB_WRITTEN_BODY_MAX */
#define HEADERS_MAX "65536"
#define BODY_MAX "67108864"
#define FITS(column, most) "length(cast(" column " as blob)) <= " most
/* Each time the same words: so the index is used. */
#define MAY_BE_HELD(table) "(" table "due>0 or " table "form>1)"
#define IS_NAME(column) "length(cast(" column " as blob)) between 1 and 255"

static const char table_format[] =
    "create table if not exists \"waybill_%w_written\"(\n"
    "  number integer primary key autoincrement,\n"
    "  form integer not null default 1,\n"
    "  written integer not null,\n"
    "  due integer not null default 0,\n"
    "  tries integer not null default 0,\n"
    "  id not null check(" IS_NAME("id") "),\n"
    "  destination check(destination is null or " IS_NAME("destination") "),\n"
    "  type not null check(" IS_NAME("type") "),\n"
    "  headers check(headers is null or " FITS("headers", HEADERS_MAX) "),\n"
    "  key blob check(key is null or " IS_NAME("key") "),\n"
    "  reason,\n"
    "  body not null check(" FITS("body", BODY_MAX) "));\n"
    "create index if not exists \"waybill_%w_written_held\" on \"waybill_%w_written\"(key, number) where " MAY_BE_HELD("") ";\n";

/* INSERT OR IGNORE, OR REPLACE reach into a trigger, and past the checks of the table, but not past these. */
#define REFUSE_UNLESS(condition, text) "  select raise(abort, '" text "') where (" condition ") is not 1;\n"
#define CHECKED(destination)                                                                       \
    REFUSE_UNLESS(IS_NAME("new.id"), "an id has 1 to 255 bytes") destination                       \
    REFUSE_UNLESS(IS_NAME("new.type"), "a type has 1 to 255 bytes")                                \
    REFUSE_UNLESS("new.key is null or " IS_NAME("new.key"), "a key is NULL, or has 1 to 255 bytes") \
    REFUSE_UNLESS("new.headers is null or " FITS("new.headers", HEADERS_MAX), "headers have 64 KiB at most") \
    REFUSE_UNLESS("new.body is null or " FITS("new.body", BODY_MAX), "a body has 64 MiB at most")  \
    HEADERS_ARE_STRINGS                                                                            \
    REFUSE_UNLESS("(select count(*) from json_each(new.headers)) <= 256", "there are 256 headers at most")
#define HEADERS_ARE_STRINGS                                                                        \
    "  select raise(abort, 'headers are a JSON object of strings')\n"                              \
    "    where new.headers is not null and iif(json_valid(new.headers), json_type(new.headers)<>'object', 1);\n" \
    "  select raise(abort, 'headers are a JSON object of strings')\n"                              \
    "    where exists(select 1 from json_each(new.headers) where type<>'text');\n"
#define WRITE_ROW(destination)                                                                     \
    "  insert into \"waybill_%w_written\"(written, id, destination, type, headers, key, body)\n"   \
    "    values(" NOW " * 1000, new.id, " destination ", new.type, new.headers, cast(new.key as blob), coalesce(new.body, x''));\n"

/* Made anew each time, with their triggers: so an installation brings them to its version. */
static const char send_format[] =
    "drop view if exists \"waybill_%w_send\";\n"
    "create view \"waybill_%w_send\" as\n"
    "  select id, destination, type, body, headers, key from \"waybill_%w_written\" where destination is not null;\n"
    "create trigger \"waybill_%w_send_insert\" instead of insert on \"waybill_%w_send\"\n"
    "begin\n"
    CHECKED(REFUSE_UNLESS(IS_NAME("new.destination"), "a destination has 1 to 255 bytes"))
    WRITE_ROW("new.destination") "end;\n";

static const char publish_format[] =
    "drop view if exists \"waybill_%w_publish\";\n"
    "create view \"waybill_%w_publish\" as\n"
    "  select id, type, body, headers, key from \"waybill_%w_written\" where destination is null;\n"
    "create trigger \"waybill_%w_publish_insert\" instead of insert on \"waybill_%w_publish\"\n"
    "begin\n"
    CHECKED("") WRITE_ROW("null") "end;\n";

/* Begins as a constraint's own words do. The table's own would not be enough: OR REPLACE, OR IGNORE turn it off. */
#define IS_CLAIMED "UNIQUE constraint failed: this message was claimed before"
/* A record beside the endpoint's own, under a key that none of these has: what the endpoint handled a program may
 * have to handle, too. Its batch number is the time and some bits, and the highest bit turned
 * (wb_sqlite_storage_batch_to_column). */
static const char claim_format[] =
    "drop view if exists \"waybill_%w_claim\";\n"
    "create view \"waybill_%w_claim\" as\n"
    "  select substr(cast(key as text), 7) as id from \"waybill_%w_dedup\" where key>=x'636c61696d2f' and key<x'636c61696d30';\n"
    "create trigger \"waybill_%w_claim_insert\" instead of insert on \"waybill_%w_claim\"\n"
    "begin\n"
    REFUSE_UNLESS("length(cast(new.id as blob)) between 1 and 248", "a message id has 1 to 248 bytes")
    "  select raise(abort, '" IS_CLAIMED "') where exists(\n"
    "    select 1 from \"waybill_%w_dedup\" where key=cast('claim/' || new.id as blob));\n"
    "  insert into \"waybill_%w_dedup\"(batch, key)\n"
    "    values(-9223372036854775808 + ((" NOW " - 1577836800000) << 22) + max(1, random() & 4194303), cast('claim/' || new.id as blob));\n"
    "end;\n";

char *wb_sqlite_written_schema(const char *tables)
{
    char *text = NULL;
    char *table = wb_sqlite_names_format(table_format, tables);
    char *send = wb_sqlite_names_format(send_format, tables);
    char *publish = wb_sqlite_names_format(publish_format, tables);
    char *claim = wb_sqlite_names_format(claim_format, tables);
    if (table && send && publish && claim)
        text = sqlite3_mprintf("%s%s%s%s", table, send, publish, claim);
    sqlite3_free(table);
    sqlite3_free(send);
    sqlite3_free(publish);
    sqlite3_free(claim);
    return text;
}

static int is_installed(wb_storage_session *session, int *ret_installed, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_storage_prepare(session, &statement,
                                           "select 1 from sqlite_master where type='table'"
                                           " and lower(name)=lower('waybill_%w_written')", error);
    if (result != WB_OK)
        return result;
    const int code = sqlite3_step(statement);
    *ret_installed = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "look for the SQL interface", error);
    (void)sqlite3_finalize(statement);
    return result;
}

/* ---- the turn ----------------------------------------------------------------------------- */

/* A lock of the operating system: it goes with the process. */
static int take_turn(wb_storage_session *session, wb_error *error)
{
    const wb_persistence *persistence = session->persistence;
    if (session->has_turn)
        return WB_OK;
    if (session->turn_fd < 0)
        session->turn_fd = wb_sqlite_lockfile_open(persistence->sessions_path);
    const int taken = session->turn_fd < 0 ? -1
                                           : wb_sqlite_lockfile_try(session->turn_fd, wb_sqlite_storage_lock_of(
                                                                        WB_SQLITE_TURN_LOCKS, persistence->endpoint->name));
    session->has_turn = taken == 1;
    return taken >= 0 ? WB_OK
                      : wb_sqlite_db_fail_file(session->db.host, errno, "lock", persistence->sessions_path, error);
}

/* ---- fetch ---------------------------------------------------------------------------------- */

static wb_written_text text_of(sqlite3_stmt *row, int column)
{
    const char *data = sqlite3_column_blob(row, column);
    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return (wb_written_text){ NULL, 0 };
    return (wb_written_text){ data ? data : "", (size_t)sqlite3_column_bytes(row, column) };
}

static int visit_row(sqlite3_stmt *row, wb_written_fn visit, void *argument, size_t *bytes)
{
    const wb_written written = {
        .struct_size = sizeof written,
        .number = (uint64_t)sqlite3_column_int64(row, 0),
        .form = (uint64_t)sqlite3_column_int64(row, 1),
        .tries = (uint64_t)sqlite3_column_int64(row, 2),
        .written = wb_sqlite_delayed_from_column(sqlite3_column_int64(row, 3)),
        .id = text_of(row, 4),
        .destination = text_of(row, 5),
        .type = text_of(row, 6),
        .headers = text_of(row, 7),
        .key = text_of(row, 8),
        .body = text_of(row, 9),
    };
    *bytes += written.type.size + written.headers.size + written.key.size + written.body.size;
    return visit(argument, &written);
}

static int visit_rows(wb_storage_session *session, const wb_written_fetch *fetch, wb_written_fn visit, void *argument, wb_error *error)
{
    sqlite3_stmt *row = session->fetch_written;
    int result = WB_OK, code = SQLITE_DONE;
    size_t bytes = 0;
    (void)sqlite3_bind_int64(row, 1, wb_sqlite_delayed_now(session));
    (void)sqlite3_bind_int64(row, 2, fetch->limit < INT32_MAX ? (int64_t)fetch->limit : INT32_MAX);
    (void)sqlite3_bind_int64(row, 3, (int64_t)fetch->form);
    (void)sqlite3_bind_int64(row, 4, WB_HAS(fetch, wb_written_fetch, behind) ? (int64_t)fetch->behind : 0);
    while (result == WB_OK && bytes < WB_WRITTEN_FETCH_BYTES && (code = sqlite3_step(row)) == SQLITE_ROW)
        result = visit_row(row, visit, argument, &bytes);
    if (result == WB_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, FETCH, error);
    (void)sqlite3_reset(row);
    return result;
}

static int find_last(wb_storage_session *session, wb_written_fetch *fetch, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(session, &session->last_written,
                                           "select max(number) from \"waybill_%w_written\"", error);
    if (result != WB_OK)
        return result;
    const int code = sqlite3_step(session->last_written);
    if (code == SQLITE_ROW)
        fetch->last = (uint64_t)sqlite3_column_int64(session->last_written, 0);
    else
        result = wb_sqlite_db_fail(&session->db, code, FETCH, error);
    (void)sqlite3_reset(session->last_written);
    return result;
}

/* Behind a row that waits, or is of a later form, nothing with its key may go. The last number first: what is
 * committed between the two is above it. */
static int fetch(wb_storage_session *session, wb_written_fetch *fetch, wb_written_fn visit, void *argument,
                 wb_error *error)
{
    fetch->has_turn = 0;
    int result = take_turn(session, error);
    if (result != WB_OK || !session->has_turn)
        return result;
    fetch->has_turn = 1;
    result = wb_sqlite_storage_prepare(
        session, &session->fetch_written,
        "select number, form, tries, written, id, destination, type, headers, key, body from \"waybill_%w_written\" as w"
        " where number>?4 and due<=?1 and form<=?3 and (key is null or not exists(select 1 from \"waybill_%w_written\" as held"
        " where " MAY_BE_HELD("held.") " and (held.due>?1 or held.form>?3) and held.key=w.key and held.number<w.number))"
        " order by number limit ?2", error);
    if (result == WB_OK && WB_HAS(fetch, wb_written_fetch, wants_last))
        result = find_last(session, fetch, error);
    return result == WB_OK ? visit_rows(session, fetch, visit, argument, error) : result;
}

/* ---- settle ----------------------------------------------------------------------------------- */

static int remove_rows(wb_storage_session *session, const uint64_t *removed, size_t count, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(session, &session->remove_written,
                                           "delete from \"waybill_%w_written\" where number=?1", error);
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        (void)sqlite3_bind_int64(session->remove_written, 1, (int64_t)removed[i]);
        result = wb_sqlite_db_run(&session->db, session->remove_written, SETTLE, error);
    }
    return result;
}

/* A newer host's may be larger than ours. */
static const wb_written_rest *rest_at(const wb_written_rest *rests, size_t index)
{
    return (const wb_written_rest *)(const void *)((const char *)rests + index * rests->struct_size);
}

static int postpone_rows(wb_storage_session *session, const wb_written_rest *rests, size_t count, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(session, &session->postpone_written,
                                           "update \"waybill_%w_written\" set due=?2, tries=tries+?3, reason=?4"
                                           " where number=?1", error);
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        const wb_written_rest *rest = rest_at(rests, i);
        (void)sqlite3_bind_int64(session->postpone_written, 1, (int64_t)rest->number);
        (void)sqlite3_bind_int64(session->postpone_written, 2,
                                 wb_sqlite_delayed_now(session) + wb_sqlite_delayed_to_column(rest->pause));
        (void)sqlite3_bind_int64(session->postpone_written, 3, rest->is_tried != 0);
        (void)sqlite3_bind_text(session->postpone_written, 4, rest->reason, -1, SQLITE_STATIC);
        result = wb_sqlite_db_run(&session->db, session->postpone_written, SETTLE, error);
        (void)sqlite3_clear_bindings(session->postpone_written);
    }
    return result;
}

static int settle(wb_storage_session *session, const uint64_t *removed, size_t removed_count,
                  const wb_written_rest *rests, size_t rest_count, wb_error *error)
{
    wb_sqlite_delayed_call call;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result != WB_OK || (!removed_count && !rest_count))
        return result;
    result = wb_sqlite_delayed_begin(&call, WB_SQLITE_DB_PROCESS_CRASH);
    if (result != WB_OK)
        return result;
    result = remove_rows(session, removed, removed_count, error);
    if (result == WB_OK)
        result = postpone_rows(session, rests, rest_count, error);
    return wb_sqlite_delayed_end(&call, result, "settle_sent");
}

/* ---- as programs do ------------------------------------------------------------------------------ */

/* As a program does that has texts: bytes stay bytes. */
static void bind_text(sqlite3_stmt *statement, int number, wb_written_text text)
{
    if (text.data)
        (void)sqlite3_bind_text64(statement, number, text.data, text.size, SQLITE_STATIC, SQLITE_UTF8);
}

static int run_once(wb_storage_session *session, sqlite3_stmt *statement, const char *doing, int *ret_refused,
                    wb_error *error)
{
    wb_sqlite_delayed_call call;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result == WB_OK)
        result = wb_sqlite_delayed_begin(&call, WB_SQLITE_DB_POWER_LOSS);
    if (result != WB_OK)
        return result;
    const int code = sqlite3_step(statement);
    *ret_refused = (code & 0xff) == SQLITE_CONSTRAINT && strcmp(sqlite3_errmsg(session->db.handle), IS_CLAIMED) == 0;
    if (code != SQLITE_DONE && !*ret_refused)
        result = wb_sqlite_db_fail(&session->db, code, doing, error);
    (void)sqlite3_reset(statement);
    return wb_sqlite_delayed_end(&call, result, NULL);
}

static int write_row(wb_storage_session *session, const wb_written *row, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int refused;
    int result = wb_sqlite_storage_prepare(
        session, &statement,
        row->destination.data
            ? "insert into \"waybill_%w_send\"(id, type, body, headers, key, destination) values(?1, ?2, ?3, ?4, ?5, ?6)"
            : "insert into \"waybill_%w_publish\"(id, type, body, headers, key) values(?1, ?2, ?3, ?4, ?5)",
        error);
    if (result != WB_OK)
        return result;
    bind_text(statement, 1, row->id);
    bind_text(statement, 2, row->type);
    (void)sqlite3_bind_blob64(statement, 3, row->body.data, row->body.size, SQLITE_STATIC);
    bind_text(statement, 4, row->headers);
    bind_text(statement, 5, row->key);
    if (row->destination.data)
        bind_text(statement, 6, row->destination);
    result = run_once(session, statement, WRITE, &refused, error);
    (void)sqlite3_finalize(statement);
    return result;
}

static int claim(wb_storage_session *session, wb_written_text id, int *ret_is_new, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int refused = 0;
    int result = wb_sqlite_storage_prepare(session, &statement, "insert into \"waybill_%w_claim\"(id) values(?1)", error);
    if (result != WB_OK)
        return result;
    bind_text(statement, 1, id);
    result = run_once(session, statement, CLAIM, &refused, error);
    *ret_is_new = result == WB_OK && !refused;
    (void)sqlite3_finalize(statement);
    return result;
}

/* ---- for people ------------------------------------------------------------------------------------ */

static int count_rows(wb_storage_session *session, size_t limit, uint64_t *ret_count, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_storage_prepare(session, &statement,
                                           "select count(*) from (select 1 from \"waybill_%w_written\" limit ?1)", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(statement, 1, limit < INT32_MAX ? (int64_t)limit : INT64_MAX);
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret_count = (uint64_t)sqlite3_column_int64(statement, 0);
    else
        result = wb_sqlite_db_fail(&session->db, code, COUNT, error);
    (void)sqlite3_finalize(statement);
    return result;
}

const wb_written_ops wb_sqlite_written_ops = {
    .struct_size = sizeof wb_sqlite_written_ops,
    .is_installed = is_installed,
    .fetch = fetch,
    .settle = settle,
    .write = write_row,
    .claim = claim,
    .count = count_rows,
};

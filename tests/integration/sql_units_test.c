/* SPDX-License-Identifier: Apache-2.0
 *
 * What the SQL persistences share, without a server: keys, names in templates, a dialect that lacks
 * something, and how many records there are said to be. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/sql/driver.h"
#include "plugins/common/sql/look.h"

#include <cmocka.h>

static char message[512];

static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...) WB_PRINTF(6, 7);
static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...)
{
    va_list arguments;
    (void)host;
    (void)error;
    (void)cause;
    (void)native_code;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return result;
}

/* ---- keys ------------------------------------------------------------------------------- */

#define UUID "c0ffee00-1234-7abc-8def-0123456789ab"
#define BYTES "\xc0\xff\xee\x00\x12\x34\x7a\xbc\x8d\xef\x01\x23\x45\x67\x89\xab"

/* An id and its key; and the other way round. */
static void assert_key(const void *id, size_t id_size, const void *key, size_t key_size)
{
    unsigned char room[WB_SQL_KEY_ROOM];
    wb_sql_key made = wb_sql_key_exchange(id, id_size, room);
    assert_int_equal(made.size, key_size);
    assert_memory_equal(made.data, key, key_size);
    made = wb_sql_key_exchange(key, key_size, room);
    assert_int_equal(made.size, id_size);
    assert_memory_equal(made.data, id, id_size);
}

#define SAME(text) assert_key(text, sizeof(text) - 1, text, sizeof(text) - 1)

static void test_keys(void **state)
{
    char longest[255];
    (void)state;
    memset(longest, WB_SQL_KEY_TAG, sizeof longest);
    assert_key(UUID, 36, "\xff" BYTES, 17);
    assert_key("\xff" BYTES, 17, UUID, 36);
    assert_key("00000000-0000-0000-0000-000000000000", 36, "\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
    for (size_t size = 1; size <= sizeof longest; size++)
        if (size != 17)
            assert_key(longest, size, longest, size);
    SAME("a");
    SAME(BYTES);
    SAME("\xfe" BYTES);
    SAME("\xff" BYTES "\xab");
    SAME("\xff" UUID);
    SAME(UUID "a");
    SAME("C0ffee00-1234-7abc-8def-0123456789ab");
    SAME("c0ffee00-1234-7abc-8def-0123456789aB");
    SAME("c0ffee00-1234-7abc-8def-0123456789ag");
    SAME("c0ffee00-1234-7abc-8def_0123456789ab");
    SAME("c0ffee0-01234-7abc-8def-0123456789ab");
    SAME("c0ffee00-1234-7abc-8def00123456789ab");
    SAME("c0ffee00-1234-7abc-8def-01234567\0009ab");
}

/* Whatever it is: the key's key is the id, so that no two ids have the same. Each place of a UUID,
 * and of a compact key, with each byte; then bytes that come near to one or the other. */
static void test_keys_lead_back(void **state)
{
    static const char likely[] = "0123456789abcdefABCDEFg-\xff/:`@";
    unsigned char id[64], room[2][WB_SQL_KEY_ROOM];
    size_t exchanged = 0;
    (void)state;
    srand(1);
    for (size_t i = 0; i < 200000; i++) {
        size_t size = i % 2 ? 36 : 17;
        memcpy(id, i % 2 ? UUID : "\xff" BYTES, size);
        if (i < 2 * 36 * 256)
            id[i / 2 % size] = (unsigned char)(i / 72);
        for (size_t n = (size_t)rand() % 4; i >= 2 * 36 * 256 && n; n--)
            id[(size_t)rand() % size] = (unsigned char)likely[(size_t)rand() % (sizeof likely - 1)];
        size += i % 97 == 0;
        const wb_sql_key key = wb_sql_key_exchange(id, size, room[0]);
        const wb_sql_key back = wb_sql_key_exchange(key.data, key.size, room[1]);
        assert_int_equal(back.size, size);
        assert_memory_equal(back.data, id, size);
        exchanged += key.size != size;
    }
    assert_in_range(exchanged, 1000, 199000);
}

static const wb_host host = { .struct_size = sizeof(wb_host), .fail = host_fail };

/* ---- names ------------------------------------------------------------------------------ */

static void put_literal(wb_sql_buffer *text, const char *value)
{
    wb_sql_buffer_put_text(text, "'");
    wb_sql_buffer_put_text(text, value);
    wb_sql_buffer_put_text(text, "'");
}

static const wb_sql_quoting quoting = { '"', "schema", put_literal };

/* A template, what becomes of it, and where the first brace is that is no name's; -1: nowhere. */
static const struct {
    const char *template, *text;
    int unknown;
} templates_of_names[] = {
    { "", "", -1 },
    { "{dedup}{pending}", "\"s\"\"x\".\"o_dedup\"\"s\"\"x\".\"o_pending\"", -1 },
    { "{endpoints} {schema}", "\"s\"\"x\".\"waybill_endpoints\" \"s\"\"x\"", -1 },
    { "{delayed} {delayed_pkey} {delayed_due}",
      "\"s\"\"x\".\"o_delayed\" \"o_delayed_pkey\" \"o_delayed_due\"", -1 },
    { "{positions} {position_key}", "\"s\"\"x\".\"o_positions\" \"o_position_key\"", -1 },
    { "{dedup_batch} {dedup_pkey} {pending_pkey}",
      "\"o_dedup_batch\" \"o_dedup_pkey\" \"o_pending_pkey\"", -1 },
    { "{endpoint}, {prefix}, {database}", "'o', 'o', 's\"x'", -1 },
    { "'{}'", "'{}'", 1 },
    { "{dedup} {", "\"s\"\"x\".\"o_dedup\" {", 8 },
    { "{dedup", "{dedup", 0 },
    { "{dedupe} {{dedup}", "{dedupe} {\"s\"\"x\".\"o_dedup\"", 0 },
    { "{prefix} {Pending}", "'o' {Pending}", 9 },
};

static void test_names(void **state)
{
    wb_sql_names names;
    (void)state;
    wb_sql_names_init(&names, &quoting, "o", "s\"x");
    for (size_t i = 0; i < sizeof templates_of_names / sizeof templates_of_names[0]; i++) {
        const char *template = templates_of_names[i].template;
        const char *unknown = wb_sql_names_unknown(template);
        char *text = wb_sql_names_text(&names, template);
        assert_string_equal(text, templates_of_names[i].text);
        assert_int_equal(unknown ? unknown - template : -1, templates_of_names[i].unknown);
        free(text);
    }
}

/* ---- what a dialect lacks ------------------------------------------------------------------ */

static int prepare_install(wb_storage_session *session, unsigned *ret_holds)
{
    (void)session;
    (void)ret_holds;
    return WB_OK;
}

static int (*const checks[])(wb_storage_session *, wb_error *) = { NULL };
static const wb_sql_definition definitions[] = { { .template = "CREATE TABLE {dedup}" } };

static const char *const removal[] = { "DROP TABLE {dedup}", NULL };
static const char *const renaming[] = { "ALTER TABLE |{dedup}| RENAME TO {dedup}", NULL };
static const char *templates[WB_SQL_COUNT];

/* One that has all. */
static wb_sql_dialect whole(void)
{
    for (int i = 0; i < WB_SQL_COUNT; i++)
        templates[i] = "SELECT FROM {dedup}";
    return (wb_sql_dialect){
        .quoting = &quoting,
        .templates = templates,
        .definitions = definitions,
        .definition_count = 1,
        .record_version = "INSERT INTO {endpoints}",
        .schema_start = "",
        .schema_end = "",
        .keys_max = 1,
        .batch_max = 1,
        .operations_max = 1,
        .clean_up_locks = 1,
        .prepare_install = prepare_install,
        .checks = checks,
        .removal = removal,
        .renaming = renaming,
        .note_subscription = { "INSERT INTO {subscribed} VALUES (", ")" },
        .forget_subscription = { "DELETE FROM {subscribed} WHERE type = ", "" },
    };
}

static void check(const wb_sql_dialect *dialect, int locks_in_transaction, const char *lacking)
{
    const wb_sql_driver driver = { .locks_in_transaction = locks_in_transaction };
    wb_sql_outbox outbox = { 0 };
    message[0] = '\0';
    const wb_endpoint_info endpoint = { .struct_size = sizeof endpoint, .name = "o" };
    const int result = wb_sql_outbox_init(&outbox, &host, dialect, &driver, &endpoint, "s", NULL);
    wb_sql_outbox_free(&outbox);
    if (result != (lacking ? WB_FATAL : WB_OK) || !strstr(message, lacking ? lacking : ""))
        fail_msg("without %s: %d: %s", lacking ? lacking : "nothing", result, message);
}

/* Without LOCK, and with a driver that has nothing else; without the other, and a pooler. */
static const struct {
    wb_sql_which which;
    const char *of_session; /* what is said if the driver's locks are the session's only */
    const char *of_transaction;
} statements[] = {
    { WB_SQL_BEGIN, "BEGIN", "BEGIN" },
    { WB_SQL_CLAIM, "CLAIM", "CLAIM" },
    { WB_SQL_CLAIM_LATE, "CLAIM_LATE", "CLAIM_LATE" },
    { WB_SQL_STORE, "STORE", "STORE" },
    { WB_SQL_MARK, "MARK", "MARK" },
    { WB_SQL_MARK_ONE, NULL, NULL },
    { WB_SQL_FORGET, "FORGET", "FORGET" },
    { WB_SQL_REMEMBER, "REMEMBER", "REMEMBER" },
    { WB_SQL_COMMIT, "COMMIT", "COMMIT" },
    { WB_SQL_ROLLBACK, "ROLLBACK", "ROLLBACK" },
    { WB_SQL_LOOKUP, "LOOKUP", "LOOKUP" },
    { WB_SQL_RELEASE, "RELEASE", "RELEASE" },
    { WB_SQL_SHRINK, "SHRINK", "SHRINK" },
    { WB_SQL_MARK_MANY, NULL, NULL },
    { WB_SQL_PENDING, "PENDING", "PENDING" },
    { WB_SQL_LOCK, "LOCK: its driver", NULL },
    { WB_SQL_LOCK_IN_TRANSACTION, NULL, "LOCK_IN_TRANSACTION" },
    { WB_SQL_UNLOCK, "UNLOCK", "UNLOCK" },
    { WB_SQL_NEXT, "NEXT", "NEXT" },
    { WB_SQL_REACH, NULL, NULL },
    { WB_SQL_CLEAN_UP, "CLEAN_UP", "CLEAN_UP" },
    { WB_SQL_CLOCK, "CLOCK", "CLOCK" },
    { WB_SQL_FUTURE, "FUTURE", "FUTURE" },
    { WB_SQL_STATS, "STATS", "STATS" },
    { WB_SQL_COUNT_RECORDS, "COUNT_RECORDS", "COUNT_RECORDS" },
    { WB_SQL_HEADS, "HEADS", "HEADS" },
    { WB_SQL_PLAN, NULL, NULL },
    { WB_SQL_DELAY, "DELAY", "DELAY" },
    { WB_SQL_NEXT_DUE, "NEXT_DUE", "NEXT_DUE" },
    { WB_SQL_TAKE, "TAKE", "TAKE" },
    { WB_SQL_FIND_DUE, NULL, NULL },
    { WB_SQL_TAKEN, "TAKEN", "TAKEN" },
    { WB_SQL_DROP, "DROP", "DROP" },
    { WB_SQL_DROP_THERE, NULL, NULL },
    { WB_SQL_PUT_BACK, "PUT_BACK", "PUT_BACK" },
    { WB_SQL_FIND, NULL, NULL },
    { WB_SQL_LIST, "LIST", "LIST" },
    { WB_SQL_SHOW, "SHOW", "SHOW" },
    { WB_SQL_WRITTEN_LOOK, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_LAST, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_COUNT, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_FETCH, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_REMOVE, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_POSTPONE, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_SEND, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_PUBLISH, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_CLAIM, "WRITTEN_", "WRITTEN_" },
    { WB_SQL_WRITTEN_CLAIMED, NULL, NULL },
    { WB_SQL_POSITION_LOCK, "POSITION_LOCK", "POSITION_LOCK" },
    { WB_SQL_POSITION_MOVE, "POSITION_MOVE", "POSITION_MOVE" },
    { WB_SQL_POSITION_MAKE, "POSITION_MAKE", "POSITION_MAKE" },
    { WB_SQL_POSITION_BACK, "POSITION_BACK", "POSITION_BACK" },
    { WB_SQL_POSITIONS, "POSITIONS", "POSITIONS" },
    { WB_SQL_POSITIONS_FORGET, "POSITIONS_FORGET", "POSITIONS_FORGET" },
    { WB_SQL_FAILED_PUT, "FAILED_", "FAILED_" },
    { WB_SQL_FAILED_TURN, "FAILED_", "FAILED_" },
    { WB_SQL_FAILED_DISCARD, "FAILED_", "FAILED_" },
    { WB_SQL_FAILED_GET, "FAILED_", "FAILED_" },
    { WB_SQL_FAILED_LIST, "FAILED_", "FAILED_" },
    { WB_SQL_FAILED_CLEAN_UP, "FAILED_", "FAILED_" },
};

static void test_missing_statements(void **state)
{
    (void)state;
    assert_int_equal(sizeof statements / sizeof statements[0], WB_SQL_COUNT);
    for (size_t i = 0; i < WB_SQL_COUNT; i++) {
        const wb_sql_dialect dialect = whole();
        templates[statements[i].which] = NULL;
        check(&dialect, 0, statements[i].of_session);
        check(&dialect, 1, statements[i].of_transaction);
    }
}

static void test_other_things_missing(void **state)
{
    wb_sql_dialect d = whole();
    (void)state;
    check(&d, 0, NULL);
    check(&d, 1, NULL);
    d.clean_up_locks = 0;
    check(&d, 0, NULL);
    check(&d, 1, "clean_up_locks");
#define LACKS(member, text)                                                                        \
    d = whole();                                                                                   \
    d.member = 0;                                                                                  \
    check(&d, 0, text)
    LACKS(templates, "templates");
    LACKS(quoting, "quoting");
    LACKS(definitions, "definitions");
    LACKS(definition_count, "definitions");
    LACKS(record_version, "record_version");
    LACKS(schema_start, "schema_start");
    LACKS(schema_end, "schema_end");
    LACKS(keys_max, "keys_max");
    LACKS(batch_max, "batch_max");
    LACKS(operations_max, "operations_max");
    LACKS(prepare_install, "prepare_install");
    LACKS(checks, "checks");
    LACKS(removal, "removal");
    LACKS(renaming, "renaming");
    LACKS(note_subscription[1], "note_subscription");
    LACKS(forget_subscription[1], "forget_subscription");
    d = whole();
    d.first_count = 2;
    check(&d, 0, "definitions");
}

static void test_names_that_mean_nothing(void **state)
{
    static const wb_sql_definition odd[] = { { .template = "CREATE TABLE {dedub}" } };
    wb_sql_dialect d = whole();
    (void)state;
    templates[WB_SQL_REACH] = "SELECT {pendin}";
    check(&d, 0, "{pendin}");
    d = whole();
    d.definitions = odd;
    check(&d, 0, "{dedub}");
    d = whole();
    d.record_version = "INSERT INTO {endpoints";
    check(&d, 0, "{endpoints");
}

/* ---- how many records ---------------------------------------------------------------------- */

/* What a server has, what it takes that for (0: it does not know), and how far it was to count. */
static struct {
    uint64_t records, estimated, limit;
} server;

static void do_nothing(wb_storage_session *session)
{
    (void)session;
}

static void queue_stats(wb_storage_session *session, wb_sql_which which, const wb_sql_value *values, size_t count,
                        wb_sql_answer *ret_answer)
{
    (void)session;
    (void)ret_answer;
    assert_int_equal(which, WB_SQL_STATS);
    assert_int_equal(count, 1);
    server.limit = values[0].number;
}

static int run(wb_storage_session *session, const char *crash_point)
{
    (void)session;
    (void)crash_point;
    return WB_OK;
}

static int fetch_stats(wb_sql_answer *answer, wb_sql_cell *ret_cells, size_t count)
{
    static uint64_t counted;
    (void)answer;
    counted = server.records < server.limit ? server.records : server.limit;
    memset(ret_cells, 0, count * sizeof *ret_cells);
    ret_cells[0] = (wb_sql_cell){ (const char *)&counted, sizeof counted };
    if (server.estimated)
        ret_cells[1] = (wb_sql_cell){ (const char *)&server.estimated, sizeof server.estimated };
    return 1;
}

static uint64_t number_of(const wb_sql_cell *cell)
{
    uint64_t number = 0;
    if (cell->data)
        memcpy(&number, cell->data, sizeof number);
    return number;
}

static void clear(wb_sql_answer *answer)
{
    (void)answer;
}

#define MOST 100000 /* that are counted, unless all are asked for */
#define MANY 5000000

/* An estimate is of some earlier time: it may be above what there is, below it, and below what was counted. */
static void test_counts(void **state)
{
    static const struct {
        uint64_t records, estimated;
        int is_exact;
        uint64_t said;
        int are;
    } rows[] = {
        { 0, 0, 0, 0, WB_COUNT_EXACT },
        { 0, MANY, 0, 0, WB_COUNT_EXACT },
        { 3, MANY, 0, 3, WB_COUNT_EXACT },
        { MOST, 0, 0, MOST, WB_COUNT_EXACT },
        { MOST, MANY, 0, MOST, WB_COUNT_EXACT },
        { MOST + 1, 0, 0, MOST + 1, WB_COUNT_AT_LEAST },
        { MANY, 0, 0, MOST + 1, WB_COUNT_AT_LEAST },
        { MANY, 1, 0, MOST + 1, WB_COUNT_AT_LEAST },
        { MANY, MOST, 0, MOST + 1, WB_COUNT_AT_LEAST },
        { MANY, MOST + 1, 0, MOST + 1, WB_COUNT_AT_LEAST },
        { MANY, MOST + 2, 0, MOST + 2, WB_COUNT_ESTIMATED },
        { MANY, 2 * MANY, 0, 2 * MANY, WB_COUNT_ESTIMATED },
        { MANY, 0, 1, MANY, WB_COUNT_EXACT },
        { MANY, 2 * MANY, 1, MANY, WB_COUNT_EXACT },
    };
    static const wb_sql_driver driver = { .start = do_nothing, .queue = queue_stats, .queue_end = do_nothing,
                                          .run = run, .fetch = fetch_stats, .number = number_of, .clear = clear };
    wb_sql_outbox outbox = { .driver = &driver };
    wb_sql_session session = { .outbox = &outbox, .state = WB_SQL_IDLE };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wb_outbox_stats stats = { .struct_size = sizeof stats, .is_exact = rows[i].is_exact };
        server.records = rows[i].records;
        server.estimated = rows[i].estimated;
        assert_int_equal(wb_sql_stats((wb_storage_session *)(void *)&session, &stats, NULL), WB_OK);
        if (stats.records != rows[i].said || stats.records_are != rows[i].are)
            fail_msg("row %zu: %llu, which is %d", i, (unsigned long long)stats.records, stats.records_are);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_keys_lead_back),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_missing_statements),
        cmocka_unit_test(test_other_things_missing),
        cmocka_unit_test(test_names_that_mean_nothing),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests_name("sql units", tests, NULL, NULL);
}

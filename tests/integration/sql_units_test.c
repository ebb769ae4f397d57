/* SPDX-License-Identifier: Apache-2.0
 *
 * What the SQL persistences share, without a server: names in templates, and a dialect that lacks
 * something. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/sql/driver.h"

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
    { WB_SQL_COMMIT, "COMMIT", "COMMIT" },
    { WB_SQL_ROLLBACK, "ROLLBACK", "ROLLBACK" },
    { WB_SQL_LOOKUP, "LOOKUP", "LOOKUP" },
    { WB_SQL_RELEASE, "RELEASE", "RELEASE" },
    { WB_SQL_SHRINK, "SHRINK", "SHRINK" },
    { WB_SQL_PENDING, "PENDING", "PENDING" },
    { WB_SQL_LOCK, "LOCK: its driver", NULL },
    { WB_SQL_LOCK_IN_TRANSACTION, NULL, "LOCK_IN_TRANSACTION" },
    { WB_SQL_UNLOCK, "UNLOCK", "UNLOCK" },
    { WB_SQL_NEXT, "NEXT", "NEXT" },
    { WB_SQL_REACH, NULL, NULL },
    { WB_SQL_CLEAN_UP, "CLEAN_UP", "CLEAN_UP" },
    { WB_SQL_CLOCK, "CLOCK", "CLOCK" },
    { WB_SQL_FUTURE, "FUTURE", "FUTURE" },
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_missing_statements),
        cmocka_unit_test(test_other_things_missing),
        cmocka_unit_test(test_names_that_mean_nothing),
    };
    return cmocka_run_group_tests_name("sql units", tests, NULL, NULL);
}

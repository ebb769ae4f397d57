/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the pgsql persistence that need no server: SQLSTATE map, names, hosts,
 * time limits, the cache of statements, what was found empty. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <waybill/sys/plugin.h>

#include "plugins/common/sql/gap.h"
#include "plugins/persistence/pgsql/pgsql-cache.h"
#include "plugins/persistence/pgsql/pgsql-map.h"
#include "plugins/persistence/pgsql/pgsql-dialect.h"
#include "plugins/persistence/pgsql/pgsql-params.h"

#include <cmocka.h>

/* ---- SQLSTATE ------------------------------------------------------------------ */

static void test_sqlstate_map(void **state)
{
#define MESSAGE WB_RETRY, WB_CAUSE_OTHER
#define SERVER WB_RETRY, WB_CAUSE_SERVER
#define NOBODY WB_ABORT, WB_CAUSE_OTHER
#define AWAY WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE
#define CROWDED WB_NOT_CONNECTED, WB_CAUSE_SERVER
    static const struct {
        const char *sqlstate;
        int handler, handler_cause, own, own_cause;
    } rows[] = {
        { "08000", MESSAGE, AWAY },
        { "08006", MESSAGE, AWAY },
        { "08P01", MESSAGE, CROWDED },
        { "0A000", MESSAGE, WB_NOT_CONNECTED, WB_CAUSE_OTHER },
        { "21000", MESSAGE, SERVER },
        { "22001", MESSAGE, WB_FATAL, WB_CAUSE_CONFIG },
        { "22P02", MESSAGE, WB_FATAL, WB_CAUSE_CONFIG },
        { "23502", MESSAGE, SERVER },
        { "23505", MESSAGE, NOBODY },
        { "25006", MESSAGE, AWAY },
        { "25P02", MESSAGE, SERVER },
        { "25P03", MESSAGE, WB_NOT_CONNECTED, WB_CAUSE_OTHER },
        { "26000", MESSAGE, WB_NOT_CONNECTED, WB_CAUSE_OTHER },
        { "26001", MESSAGE, WB_FATAL, WB_CAUSE_OTHER },
        { "28000", MESSAGE, WB_FATAL, WB_CAUSE_REFUSED },
        { "28P01", MESSAGE, WB_FATAL, WB_CAUSE_REFUSED },
        { "3D000", MESSAGE, WB_FATAL, WB_CAUSE_MISSING },
        { "3F000", MESSAGE, WB_FATAL, WB_CAUSE_MISSING },
        { "40001", NOBODY, NOBODY },
        { "40002", NOBODY, NOBODY },
        { "40003", NOBODY, WB_IN_DOUBT, WB_CAUSE_OTHER },
        { "40P01", NOBODY, NOBODY },
        { "42501", MESSAGE, WB_FATAL, WB_CAUSE_REFUSED },
        { "42601", MESSAGE, WB_FATAL, WB_CAUSE_MISMATCH },
        { "42703", MESSAGE, WB_FATAL, WB_CAUSE_MISMATCH },
        { "42P01", MESSAGE, WB_FATAL, WB_CAUSE_MISSING },
        { "53000", SERVER, SERVER },
        { "53100", SERVER, SERVER },
        { "53200", SERVER, SERVER },
        { "53300", SERVER, CROWDED },
        { "53400", SERVER, SERVER },
        { "54000", MESSAGE, WB_REJECT, WB_CAUSE_TOO_LARGE },
        { "55006", MESSAGE, SERVER },
        { "55P03", SERVER, SERVER },
        { "57000", SERVER, AWAY },
        { "57014", SERVER, SERVER },
        { "57P01", SERVER, AWAY },
        { "57P03", SERVER, AWAY },
        { "57P04", SERVER, WB_NOT_CONNECTED, WB_CAUSE_MISSING },
        { "58000", SERVER, SERVER },
        { "58030", SERVER, SERVER },
        { "58P01", SERVER, SERVER },
        { "P0001", MESSAGE, SERVER },
        { "XX000", MESSAGE, SERVER },
        { "XX001", MESSAGE, SERVER },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const pgsql_mapping *got = pgsql_map(rows[i].sqlstate);
        if (got->handler != rows[i].handler || got->handler_cause != rows[i].handler_cause ||
            got->own != rows[i].own || got->own_cause != rows[i].own_cause)
            fail_msg("%s: handler %d, cause %d; own %d, cause %d", rows[i].sqlstate, got->handler,
                     got->handler_cause, got->own, got->own_cause);
    }
    assert_int_equal(pgsql_native_code("00010"), 36);
    assert_int_not_equal(pgsql_native_code("40P01"), pgsql_native_code("40001"));
}

/* ---- names --------------------------------------------------------------------- */

static const char *prefix_of(const char *endpoint)
{
    static wb_sql_names names;
    wb_sql_names_init(&names, &pgsql_quoting, endpoint, "public");
    return names.prefix;
}

static void test_plain_names_are_kept(void **state)
{
    (void)state;
    assert_string_equal(prefix_of("orders"), "orders");
    assert_string_equal(prefix_of("2_orders"), "2_orders");
    assert_string_equal(prefix_of("a2345678901234567890123456789012345678901234567890"),
                        "a2345678901234567890123456789012345678901234567890"); /* 50 */
}

static void test_other_names_never_meet(void **state)
{
    static const char *const names[] = {
        "Orders", "orders", "ORDERS", "sales.orders", "sales_orders", "Sales.Orders",
        "sales-orders", "sales orders", "sales\"orders", "b\xc3\xbc\x63her", "b__cher",
        "b\xc3\xbc\x63her ",
        "a23456789012345678901234567890123456789012345678901",
        "a23456789012345678901234567890123456789012345678902",
        "a2345678901234567890123456789012345678901234567890",
    };
    const size_t count = sizeof names / sizeof names[0];
    char seen[sizeof names / sizeof names[0]][WB_SQL_PREFIX_MAX + 1];
    (void)state;
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(seen[i], sizeof seen[i], "%s", prefix_of(names[i]));
        assert_true(strlen(seen[i]) > 0);
        assert_int_equal(strspn(seen[i], "abcdefghijklmnopqrstuvwxyz0123456789_$"),
                         strlen(seen[i]));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
    }
}

static void test_identifiers_fit(void **state)
{
    char name[300];
    (void)state;
    memset(name, 'X', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_string_equal(prefix_of("Orders"), "orders$e87b30a62af9f12c"); /* tables of this name exist */
    assert_int_equal(strlen(prefix_of(name)), WB_SQL_PREFIX_MAX);
    assert_true(WB_SQL_PREFIX_MAX + strlen("_pending_pkey") <= PGSQL_IDENTIFIER_MAX);
}

static void assert_expands(const char *endpoint, const char *schema, const char *template,
                           const char *wanted)
{
    wb_sql_names names;
    wb_sql_buffer text = { 0 };
    wb_sql_names_init(&names, &pgsql_quoting, endpoint, schema);
    wb_sql_names_expand(&names, template, &text);
    wb_sql_buffer_put(&text, "", 1);
    assert_string_equal(text.data, wanted);
    wb_sql_buffer_free(&text);
}

static void test_expansion_quotes(void **state)
{
    (void)state;
    assert_expands("orders", "public", "delete from {dedup};",
                   "delete from \"public\".\"orders_dedup\";");
    assert_expands("orders", "a\"b", "{pending}{schema}",
                   "\"a\"\"b\".\"orders_pending\"\"a\"\"b\"");
    assert_expands("o'r", "public", "x{endpoint}y", "x'o''r'y");
    assert_expands("o'r\\", "public", "({endpoint})", "( E'o''r\\\\')");
    assert_expands("orders", "public",
                   "{dedup_batch} {dedup_pkey} {pending_pkey} {endpoints} {prefix}",
                   "\"orders_dedup_batch\" \"orders_dedup_pkey\" \"orders_pending_pkey\" "
                   "\"public\".\"waybill_endpoints\" 'orders'");
}

static void test_locks_differ(void **state)
{
    wb_sql_names a, b, c;
    (void)state;
    wb_sql_names_init(&a, &pgsql_quoting, "orders", "public");
    wb_sql_names_init(&b, &pgsql_quoting, "billing", "public");
    wb_sql_names_init(&c, &pgsql_quoting, "orders", "other");
    int64_t sweep = pgsql_lock_key(&a, "sweep", a.prefix);
    assert_true(sweep == pgsql_lock_key(&a, "sweep", a.prefix));
    assert_true(sweep != pgsql_lock_key(&a, "cleanup", a.prefix));
    assert_true(sweep != pgsql_lock_key(&b, "sweep", b.prefix));
    assert_true(sweep != pgsql_lock_key(&c, "sweep", c.prefix));
    assert_true(pgsql_lock_key(&a, "install", "") ==
                pgsql_lock_key(&b, "install", ""));
}

/* ---- hosts ----------------------------------------------------------------------- */

static void test_local_hosts(void **state)
{
    (void)state;
    assert_true(pgsql_params_are_local(NULL, NULL));
    assert_true(pgsql_params_are_local("", NULL));
    assert_true(pgsql_params_are_local("/run/postgresql", NULL));
    assert_true(pgsql_params_are_local("@abstract", NULL));
    assert_true(pgsql_params_are_local("localhost", NULL));
    assert_true(pgsql_params_are_local("127.0.0.1,/tmp,::1", NULL));
    assert_true(pgsql_params_are_local("db1", "127.0.0.1"));
    assert_true(pgsql_params_are_local(NULL, "::1"));
    assert_false(pgsql_params_are_local("db1", NULL));
    assert_false(pgsql_params_are_local("localhost,db1", NULL));
    assert_false(pgsql_params_are_local("127.0.0.1.example.org", NULL));
    assert_false(pgsql_params_are_local("localhost.example.org", NULL));
    assert_false(pgsql_params_are_local("localhost", "192.0.2.1"));
    assert_false(pgsql_params_are_local("localhost,localhost", "127.0.0.1,192.0.2.1"));
}

static const char *value_of(const pgsql_params *params, const char *keyword)
{
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(params->keywords[i], keyword) == 0)
            return params->values[i];
    return NULL;
}

static char message[512];

static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...) WB_PRINTF(6, 7);
static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...)
{
    va_list arguments;
    (void)host;
    (void)error;
    (void)native_code;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    assert_int_equal(cause, WB_CAUSE_CONFIG);
    return result;
}
static int warnings;
static atomic_int was_said; /* the warning */

static void host_log(const wb_host *host, int level, const char *text, const wb_field *fields,
                     size_t count)
{
    (void)host;
    (void)fields;
    (void)count;
    assert_int_equal(level, WB_LOG_WARNING);
    assert_non_null(strstr(text, "verify-full"));
    warnings++;
}

static const wb_host host = { .struct_size = sizeof(wb_host), .fail = host_fail, .log = host_log };

static void test_params_override_and_are_safe(void **state)
{
    pgsql_config config = { .conninfo = "host=db1 dbname=shop user=joe application_name=mine",
                            .user = "ann",
                            .password = "hunter2" };
    pgsql_params params;
    (void)state;
    assert_int_equal(pgsql_params_build(&host, &config, "orders", &was_said, &params, NULL), WB_OK);
    assert_string_equal(value_of(&params, "host"), "db1");
    assert_string_equal(value_of(&params, "user"), "ann");
    assert_string_equal(value_of(&params, "password"), "hunter2");
    assert_string_equal(value_of(&params, "application_name"), "mine");
    assert_string_equal(value_of(&params, "sslmode"), "verify-full");
    assert_string_equal(value_of(&params, "client_encoding"), "UTF8");
    assert_null(value_of(&params, "target_session_attrs"));
    /* a machine that is gone says nothing: minutes, not hours */
    assert_string_equal(value_of(&params, "keepalives_idle"), "30");
    assert_string_equal(value_of(&params, "keepalives_interval"), "10");
    assert_string_equal(value_of(&params, "keepalives_count"), "3");
    pgsql_params_free(&params);

    config = (pgsql_config){ .conninfo = "postgresql://db1,db2/shop?sslmode=require" };
    assert_int_equal(pgsql_params_build(&host, &config, "orders", &was_said, &params, NULL), WB_OK);
    assert_string_equal(value_of(&params, "sslmode"), "require");
    assert_string_equal(value_of(&params, "target_session_attrs"), "read-write");
    assert_string_equal(value_of(&params, "application_name"), "waybill/orders");
    assert_int_equal(params.servers.count, 2);
    pgsql_params_free(&params);

    config = (pgsql_config){ .host = "127.0.0.1", .port = 6000 };
    assert_int_equal(pgsql_params_build(&host, &config, "orders", &was_said, &params, NULL), WB_OK);
    assert_null(value_of(&params, "sslmode"));
    assert_string_equal(value_of(&params, "port"), "6000");
    pgsql_params_free(&params);
}

/* A row: the environment, the options; sslmode, whether it is refused, whether warned of. */
typedef struct tls_row {
    const char *variable, *value;
    pgsql_config config;
    const char *sslmode;
    int is_refused, is_warned;
} tls_row;

#define DISABLE 1
#define PREFER 3
#define REQUIRE 4
#define VERIFY_CA 5
#define VERIFY_FULL 6

static void check_tls_row(const tls_row *row, size_t number)
{
    pgsql_params params;
    was_said = 0;
    warnings = 0;
    if (row->variable)
        setenv(row->variable, row->value, 1);
    int result = pgsql_params_build(&host, &row->config, "orders", &was_said, &params, NULL);
    if (row->variable)
        unsetenv(row->variable);
    const char *sslmode = value_of(&params, "sslmode");
    if (result != (row->is_refused ? WB_FATAL : WB_OK) || warnings != row->is_warned ||
        strcmp(sslmode ? sslmode : "", row->sslmode) != 0)
        fail_msg("row %zu: result %d, sslmode %s, %d warnings", number, result,
                 sslmode ? sslmode : "unsaid", warnings);
    if (row->is_refused)
        assert_non_null(strstr(message, "allow_insecure"));
    pgsql_params_free(&params);
}

static void test_tls_is_not_weakened_in_silence(void **state)
{
    static const tls_row rows[] = {
        { "PGSSLMODE", "disable", { .host = "db1" }, "verify-full", 0, 0 },
        { "PGSSLMODE", "allow", { .host = "db1" }, "verify-full", 0, 0 },
        { "PGSSLMODE", "require", { .host = "db1" }, "verify-full", 0, 0 },
        { "PGSSLMODE", "verify-ca", { .host = "127.0.0.1,db1" }, "verify-full", 0, 0 },
        { "PGREQUIRESSL", "1", { .host = "db1" }, "verify-full", 0, 0 },
        { "PGHOST", "db1", { .database = "shop" }, "verify-full", 0, 0 },
        { "PGSSLMODE", "disable", { .host = "127.0.0.1" }, "", 0, 0 },
        { "PGSSLMODE", "disable", { .host = "db1", .sslmode = REQUIRE }, "require", 0, 1 },
        { NULL, NULL, { .host = "db1", .sslmode = DISABLE }, "disable", 1, 0 },
        { NULL, NULL, { .host = "db1", .sslmode = PREFER }, "prefer", 1, 0 },
        { NULL, NULL, { .conninfo = "host=db1 sslmode=allow" }, "allow", 1, 0 },
        { NULL, NULL, { .conninfo = "hostaddr=10.0.0.1 sslmode=disable" }, "disable", 1, 0 },
        { NULL, NULL, { .host = "db1", .sslmode = DISABLE, .allow_insecure = 1 }, "disable", 0, 1 },
        { NULL, NULL, { .host = "db1", .sslmode = VERIFY_CA }, "verify-ca", 0, 1 },
        { NULL, NULL, { .host = "db1", .sslmode = VERIFY_FULL }, "verify-full", 0, 0 },
        { NULL, NULL, { .host = "/run/postgresql", .sslmode = DISABLE }, "disable", 0, 0 },
        { NULL, NULL, { .host = "::1", .sslmode = REQUIRE }, "require", 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_tls_row(&rows[i], i);
}

static void test_the_environment_lowers_no_version(void **state)
{
    const pgsql_config away = { .host = "db1" };
    const pgsql_config said = { .conninfo = "host=db1 ssl_min_protocol_version=TLSv1.3" };
    pgsql_params params;
    (void)state;
    setenv("PGSSLMINPROTOCOLVERSION", "TLSv1", 1);
    assert_int_equal(pgsql_params_build(&host, &away, "orders", &was_said, &params, NULL), WB_OK);
    assert_string_equal(value_of(&params, "ssl_min_protocol_version"), "TLSv1.2");
    pgsql_params_free(&params);
    assert_int_equal(pgsql_params_build(&host, &said, "orders", &was_said, &params, NULL), WB_OK);
    assert_string_equal(value_of(&params, "ssl_min_protocol_version"), "TLSv1.3");
    pgsql_params_free(&params);
    unsetenv("PGSSLMINPROTOCOLVERSION");
}

/* A service that conninfo names is configuration; one that the environment names is not. */
static void test_services_count_when_they_are_asked_for(void **state)
{
    const tls_row rows[] = {
        { NULL, NULL, { .conninfo = "service=strict" }, "verify-full", 0, 0 },
        { NULL, NULL, { .conninfo = "service=lax" }, "require", 0, 1 },
        { NULL, NULL, { .conninfo = "service=plain" }, "disable", 1, 0 },
        { "PGSSLMODE", "require", { .conninfo = "service=strict" }, "verify-full", 0, 0 },
        { "PGSERVICE", "lax", { .database = "shop" }, "verify-full", 0, 0 },
    };
    char path[] = "/tmp/waybill-services.XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    (void)state;
    assert_non_null(file);
    (void)fputs("[strict]\nhost=db1\n[lax]\nhost=db1\nsslmode=require\n"
                "[plain]\nhost=db1\nsslmode=disable\n",
                file);
    (void)fclose(file);
    setenv("PGSERVICEFILE", path, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_tls_row(&rows[i], i);
    unsetenv("PGSERVICEFILE");
    (void)unlink(path);
}

static void test_malformed_conninfo_keeps_its_secret(void **state)
{
    const pgsql_config config = { .conninfo = "password=x hunter2 host=db1" };
    pgsql_params params;
    (void)state;
    assert_int_equal(pgsql_params_build(&host, &config, "orders", &was_said, &params, NULL), WB_FATAL);
    assert_null(strstr(message, "hunter2"));
    pgsql_params_free(&params);
}

/* ---- time limits ------------------------------------------------------------------- */

static int is_asked_about(const char *setting)
{
    for (size_t i = 0; pgsql_dialect.questions[i]; i++)
        if (strstr(pgsql_dialect.questions[i], setting))
            return 1;
    return 0;
}

/* What ends a transaction that waits for us. By name: the servers that the other tests have need not know all of them. */
static void test_limits_of_transactions_are_known(void **state)
{
    static const char *const limits[] = { "'idle_in_transaction_session_timeout'", "'transaction_timeout'" /* 17 */ };
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (!strstr(pgsql_dialect.templates[WB_SQL_LOCK_IN_TRANSACTION], limits[i]))
            fail_msg("%s ends the transaction that has a row's lock", limits[i]);
        if (!is_asked_about(limits[i]))
            fail_msg("of %s nobody is told", limits[i]);
    }
}

/* ---- cache ------------------------------------------------------------------------ */

static void test_cache_knows_text_and_types(void **state)
{
    pgsql_cache cache = { 0 };
    const Oid integer = 23;
    const Oid text = 25;
    char buffer[] = "select $1";
    (void)state;
    pgsql_cached *a = pgsql_cache_use(&cache, buffer, 1, NULL);
    assert_ptr_equal(pgsql_cache_use(&cache, "select $1", 1, NULL), a);
    assert_int_equal(a->uses, 2);
    assert_ptr_not_equal(pgsql_cache_use(&cache, "select $1", 1, &integer), a);
    assert_ptr_not_equal(pgsql_cache_use(&cache, "select $1", 1, &integer),
                         pgsql_cache_use(&cache, "select $1", 1, &text));
    buffer[0] = 'S'; /* the same memory with another text */
    assert_ptr_not_equal(pgsql_cache_use(&cache, buffer, 1, NULL), a);
    pgsql_cache_free(&cache);
}

static void test_cache_is_bounded(void **state)
{
    pgsql_cache cache = { 0 };
    char text[32];
    (void)state;
    pgsql_cached *first = pgsql_cache_use(&cache, "first", 0, NULL);
    pgsql_cache_name(&cache, first);
    first->is_ready = 1;
    for (int i = 1; i < PGSQL_CACHE_MAX; i++) {
        (void)snprintf(text, sizeof text, "statement %d", i);
        assert_non_null(pgsql_cache_use(&cache, text, 0, NULL));
    }
    /* all are in use by what is deferred */
    assert_null(pgsql_cache_use(&cache, "one more", 0, NULL));
    pgsql_cache_next_round(&cache);
    assert_non_null(pgsql_cache_use(&cache, "one more", 0, NULL));
    /* the oldest went, and the server is to be told */
    assert_int_equal(cache.dropped_count, 1);
    assert_string_equal(cache.dropped[0], "waybill_d1");
    assert_int_equal(cache.count, PGSQL_CACHE_MAX);
    pgsql_cache_free(&cache);
}

/* ---- what was found empty ------------------------------------------------------ */

#define SECOND INT64_C(1000000000)

/* All from `from` on was looked through, in so many seconds. */
static void look_through(wb_sql_gap *gap, uint64_t from, uint64_t reached, int64_t now, int64_t took)
{
    wb_sql_look look = wb_sql_gap_begin(gap, from, now * SECOND);
    assert_int_equal(look.start, from);
    look.reached = reached;
    look.ended = (now + took) * SECOND;
    wb_sql_gap_end(gap, &look);
}

static uint64_t start_of_look(wb_sql_gap *gap, uint64_t from, int64_t now)
{
    return wb_sql_gap_begin(gap, from, now * SECOND).start;
}

static void test_a_gap_is_passed_over_for_a_while(void **state)
{
    wb_sql_gap gap;
    (void)state;
    wb_sql_gap_init(&gap);
    look_through(&gap, 10, 100, -10, 5);
    look_through(&gap, 10, 100, 0, 5);
    assert_int_equal(start_of_look(&gap, 9, 6), 9);
    assert_int_equal(start_of_look(&gap, 10, 104), 100);
    assert_int_equal(start_of_look(&gap, 99, 104), 100);
    assert_int_equal(start_of_look(&gap, 100, 104), 100);
    assert_int_equal(start_of_look(&gap, 101, 104), 101);
    assert_int_equal(start_of_look(&gap, 10, 105), 10);
    wb_sql_gap_free(&gap);
}

/* A machine that stands still for a moment hides nothing. A range that was slow to look through
 * stays so until a look at it was quick. */
static void test_one_slow_look_tells_nothing(void **state)
{
    wb_sql_gap gap;
    (void)state;
    wb_sql_gap_init(&gap);
    look_through(&gap, 10, 100, 0, 5);
    look_through(&gap, 10, 100, 6, 0);
    look_through(&gap, 10, 100, 7, 5);
    look_through(&gap, 200, 300, 13, 0);
    look_through(&gap, 10, 90, 14, 2);
    assert_int_equal(start_of_look(&gap, 10, 17), 90);
    look_through(&gap, 10, 80, 56, 3);
    assert_int_equal(start_of_look(&gap, 10, 60), 80);
    wb_sql_gap_free(&gap);
}

/* Looks take turns at ranges that are all slow. One that is slow once and is not looked at again
 * is forgotten in time. */
static void test_the_dearest_of_slow_ranges_is_found(void **state)
{
    wb_sql_gap gap;
    int64_t now = 0;
    (void)state;
    wb_sql_gap_init(&gap);
    look_through(&gap, 900, 950, now, 3);
    for (int round = 0; round < 9; round++) {
        look_through(&gap, 10, 100, now += 10, 1);
        look_through(&gap, 200, 300, now += 10, 2);
        if (start_of_look(&gap, 200, now + 2) == 300)
            break;
    }
    assert_int_equal(start_of_look(&gap, 200, now + 2), 300);
    assert_int_equal(start_of_look(&gap, 10, now + 2), 10);
    wb_sql_gap_free(&gap);
}

static int64_t end_step(wb_sql_gap *gap, uint64_t from, uint64_t reached, int64_t now, int64_t took,
                        int goes_on)
{
    wb_sql_look look = wb_sql_gap_begin(gap, from, now * SECOND);
    look.reached = reached;
    look.ended = (now + took) * SECOND;
    look.goes_on = goes_on;
    wb_sql_gap_end(gap, &look);
    return now + took;
}

/* While steps follow each other they need not begin anew; afterwards the rule is the same. */
static void test_steps_go_on_at_once(void **state)
{
    wb_sql_gap gap;
    int64_t now = 0;
    (void)state;
    wb_sql_gap_init(&gap);
    for (int round = 0; round < 2; round++) {
        now = end_step(&gap, 0, 50, now, 2, 1);
        assert_int_equal(start_of_look(&gap, 0, now), 50);
        now = end_step(&gap, 0, 70, now, 2, 1);
        assert_int_equal(start_of_look(&gap, 0, now), 70);
        now = end_step(&gap, 0, 100, now, 2, 0);
        assert_int_equal(start_of_look(&gap, 0, now), round ? 100 : 0);
    }
    wb_sql_gap_free(&gap);
}

/* The dearest counts, as long as it holds. */
static void test_which_gap_is_kept(void **state)
{
    wb_sql_gap gap;
    (void)state;
    wb_sql_gap_init(&gap);
    look_through(&gap, 10, 100, -10, 5);
    look_through(&gap, 10, 100, 0, 5);
    look_through(&gap, 200, 300, 10, 4);
    assert_int_equal(start_of_look(&gap, 10, 20), 100);
    look_through(&gap, 200, 300, 20, 6);
    assert_int_equal(start_of_look(&gap, 200, 30), 300);
    look_through(&gap, 10, 100, 147, 2);
    look_through(&gap, 10, 100, 150, 2);
    assert_int_equal(start_of_look(&gap, 10, 160), 100);
    wb_sql_gap_free(&gap);
}

/* Two look at once: who went on behind a gap that is another by now does not stretch it over the
 * row that the other found. */
static void test_looks_at_once(void **state)
{
    wb_sql_gap gap;
    (void)state;
    wb_sql_gap_init(&gap);
    look_through(&gap, 10, 100, -10, 5);
    look_through(&gap, 10, 100, 0, 5);
    wb_sql_look late = wb_sql_gap_begin(&gap, 10, 104 * SECOND);
    look_through(&gap, 10, 60, 106, 6);
    late.reached = 200;
    late.ended = 113 * SECOND;
    wb_sql_gap_end(&gap, &late);
    assert_int_equal(start_of_look(&gap, 10, 120), 60);
    wb_sql_gap_free(&gap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sqlstate_map),
        cmocka_unit_test(test_plain_names_are_kept),
        cmocka_unit_test(test_other_names_never_meet),
        cmocka_unit_test(test_identifiers_fit),
        cmocka_unit_test(test_expansion_quotes),
        cmocka_unit_test(test_locks_differ),
        cmocka_unit_test(test_local_hosts),
        cmocka_unit_test(test_params_override_and_are_safe),
        cmocka_unit_test(test_malformed_conninfo_keeps_its_secret),
        cmocka_unit_test(test_tls_is_not_weakened_in_silence),
        cmocka_unit_test(test_the_environment_lowers_no_version),
        cmocka_unit_test(test_services_count_when_they_are_asked_for),
        cmocka_unit_test(test_limits_of_transactions_are_known),
        cmocka_unit_test(test_cache_knows_text_and_types),
        cmocka_unit_test(test_cache_is_bounded),
        cmocka_unit_test(test_a_gap_is_passed_over_for_a_while),
        cmocka_unit_test(test_one_slow_look_tells_nothing),
        cmocka_unit_test(test_the_dearest_of_slow_ranges_is_found),
        cmocka_unit_test(test_steps_go_on_at_once),
        cmocka_unit_test(test_which_gap_is_kept),
        cmocka_unit_test(test_looks_at_once),
    };
    return cmocka_run_group_tests_name("pgsql units", tests, NULL, NULL);
}

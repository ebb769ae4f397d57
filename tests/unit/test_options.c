/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <limits.h>

#include "tests/unit/conf_support.h"

#include "core/config/configuration.h"
#include "core/config/suggest.h"
#include "core/config/units.h"

static void expect_duration(const char *text, int result, int64_t value)
{
    int64_t parsed = -1;
    assert_int_equal(wb_duration_parse(text, &parsed), result);
    if (result == WB_UNIT_OK)
        assert_true(parsed == value);
}

static void test_durations(void **state)
{
    (void)state;
    expect_duration("1ns", WB_UNIT_OK, 1);
    expect_duration("2us", WB_UNIT_OK, 2000);
    expect_duration("20ms", WB_UNIT_OK, 20000000);
    expect_duration("10s", WB_UNIT_OK, INT64_C(10000000000));
    expect_duration("1min", WB_UNIT_OK, INT64_C(60000000000));
    expect_duration("1m", WB_UNIT_OK, INT64_C(60000000000));
    expect_duration("2h", WB_UNIT_OK, INT64_C(7200000000000));
    expect_duration("7d", WB_UNIT_OK, INT64_C(604800000000000));
    expect_duration("0", WB_UNIT_OK, 0);
    expect_duration("0s", WB_UNIT_OK, 0);
    expect_duration("106751d", WB_UNIT_OK, INT64_C(106751) * 86400 * 1000000000);
    expect_duration("106752d", WB_UNIT_OVERFLOW, 0);
    expect_duration("99999999999999999999ns", WB_UNIT_OVERFLOW, 0);
    static const char *const bad[] = { "",   "s",    "10",  "-1s",   "1.5s", "1 s",
                                       "5x", "1sec", " 1s", "1s ",   "1S",   "+1s",
                                       "1e3s" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_duration(bad[i], WB_UNIT_MALFORMED, 0);
}

static void expect_size(const char *text, int result, int64_t value)
{
    int64_t parsed = -1;
    assert_int_equal(wb_size_parse(text, &parsed), result);
    if (result == WB_UNIT_OK)
        assert_true(parsed == value);
}

static void test_sizes(void **state)
{
    (void)state;
    expect_size("1B", WB_UNIT_OK, 1);
    expect_size("2kB", WB_UNIT_OK, 2000);
    expect_size("2KiB", WB_UNIT_OK, 2048);
    expect_size("16MiB", WB_UNIT_OK, 16777216);
    expect_size("1MB", WB_UNIT_OK, 1000000);
    expect_size("3GiB", WB_UNIT_OK, INT64_C(3221225472));
    expect_size("1TiB", WB_UNIT_OK, INT64_C(1099511627776));
    expect_size("8388608TiB", WB_UNIT_OVERFLOW, 0);
    expect_size("8388607TiB", WB_UNIT_OK, INT64_C(8388607) << 40);
    expect_size("1KB", WB_UNIT_MALFORMED, 0);
    expect_size("1mib", WB_UNIT_MALFORMED, 0);
    expect_size("16", WB_UNIT_MALFORMED, 0);
}

static void test_formats_read_back(void **state)
{
    static const int64_t values[] = { 0, 1, 999, 1000, 1024, 60000000000, 86400000000000,
                                      16777216, 1500000000, INT64_MAX };
    char text[WB_UNIT_TEXT_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        expect_duration(wb_duration_format(values[i], text), WB_UNIT_OK, values[i]);
        expect_size(wb_size_format(values[i], text), WB_UNIT_OK, values[i]);
    }
    assert_string_equal(wb_duration_format(INT64_C(604800000000000), text), "7d");
    assert_string_equal(wb_duration_format(1500000000, text), "1500ms");
    assert_string_equal(wb_size_format(16777216, text), "16MiB");
}

static void test_suggestions(void **state)
{
    const char *best = NULL;
    (void)state;
    assert_int_equal(wb_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(wb_edit_distance("ampq", "amqp"), 1);
    assert_int_equal(wb_edit_distance("", "abc"), 3);
    wb_suggest("batch_mx", "batch_time", &best);
    wb_suggest("batch_mx", "batch_max", &best);
    wb_suggest("batch_mx", "body_max", &best);
    assert_string_equal(best, "batch_max");
    best = NULL;
    wb_suggest("zebra", "name", &best);
    assert_null(best);
    wb_suggest("ab", "xy", &best);
    assert_null(best);
}

/* ---- a table with every type ---- */

typedef struct {
    const char *host;
    const char *password;
    int64_t port;
    int64_t timeout;
    int64_t window;
    int32_t tls;
    int32_t level;
    const wb_option_map *extra;
    const wb_option_list *hosts;
    const char *file;
} settings;

static const char *const levels[] = { "low", "high", NULL };
static const char *const no_paths[] = { "system", NULL };

#define FIELD(field) .offset = offsetof(settings, field)
static const wb_option table[] = {
    { .name = "host", .type = WB_OPTION_STRING, FIELD(host), .default_text = "localhost" },
    { .name = "password", .type = WB_OPTION_STRING, .flags = WB_OPTION_SECRET, FIELD(password),
      .default_text = "guest" },
    { .name = "port", .type = WB_OPTION_INTEGER, .flags = WB_OPTION_REQUIRED, FIELD(port),
      .minimum = 1, .maximum = 65535, .summary = "the port" },
    { .name = "timeout", .type = WB_OPTION_DURATION, FIELD(timeout), .default_text = "10s",
      .minimum = 1000000, .maximum = INT64_MAX },
    { .name = "window", .type = WB_OPTION_SIZE, FIELD(window), .default_text = "64KiB" },
    { .name = "tls", .type = WB_OPTION_BOOLEAN, FIELD(tls), .default_text = "true" },
    { .name = "level", .type = WB_OPTION_CHOICE, FIELD(level), .default_text = "high",
      .choices = levels },
    { .name = "extra", .type = WB_OPTION_MAP, FIELD(extra) },
    { .name = "hosts", .type = WB_OPTION_LIST, FIELD(hosts) },
    { .name = "file", .type = WB_OPTION_PATH, FIELD(file), .default_text = "default.db", .choices = no_paths },
};
#define TABLE_COUNT (sizeof table / sizeof table[0])

typedef struct {
    wb_arena arena;
    wb_secrets secrets;
    wb_problems problems;
    settings values;
    wb_conf_origin origins[TABLE_COUNT];
} fixture;

static int parse(fixture *f, const char *text)
{
    memset(f, 0, sizeof *f);
    wb_arena_init(&f->arena, 1024);
    const wb_conf_node *root =
        wb_conf_read(&f->arena, conf_write("options.conf", text), &f->problems);
    assert_non_null(root);
    wb_option_scope scope = { &f->arena, &f->secrets, &f->problems, "subject: ", NULL };
    return wb_options_parse(&scope, table, TABLE_COUNT, sizeof table[0], root, root->at,
                            &f->values, f->origins);
}

static void discard(fixture *f)
{
    wb_secrets_wipe(&f->secrets);
    wb_arena_free(&f->arena);
    wb_problems_free(&f->problems);
}

static void test_defaults(void **state)
{
    fixture f;
    (void)state;
    assert_int_equal(parse(&f, "port = 5672;"), WB_OK);
    assert_string_equal(f.values.host, "localhost");
    assert_string_equal(f.values.password, "guest");
    assert_int_equal(f.values.port, 5672);
    assert_true(f.values.timeout == INT64_C(10000000000));
    assert_int_equal(f.values.window, 65536);
    assert_int_equal(f.values.tls, 1);
    assert_int_equal(f.values.level, 1);
    assert_null(f.values.extra);
    assert_null(f.values.hosts);
    assert_int_equal(f.origins[2].is_set, 1);
    assert_int_equal(f.origins[0].is_set, 0);
    assert_int_equal(f.problems.count, 0);
    discard(&f);
}

static void test_every_type(void **state)
{
    fixture f;
    (void)state;
    int result = parse(&f, "host = \"h\"; port = 1; timeout = \"0\"; timeout2 = 1;");
    assert_int_equal(result, WB_FATAL);
    assert_problem(&f.problems, "option \"timeout\" = \"0\" is out of range (at least 1ms)");
    assert_int_equal(f.origins[3].is_set, 0);
    assert_problem(&f.problems, "unknown option \"timeout2\"; did you mean \"timeout\"?");
    discard(&f);
    assert_int_equal(parse(&f, "port = 65535;"), WB_OK);
    discard(&f);
    assert_int_equal(parse(&f, "port = 65536;"), WB_FATAL);
    assert_problem(&f.problems, "option \"port\" = 65536 is out of range (1 to 65535)");
    discard(&f);
    result = parse(&f, "port = 1; timeout = \"2ms\"; window = \"1MiB\"; tls = false;\n"
                       "level = \"low\"; extra = { a = \"1\"; b = \"2\"; };\n"
                       "hosts = [\"x\", \"y\"];");
    assert_int_equal(result, WB_OK);
    assert_int_equal(f.values.timeout, 2000000);
    assert_int_equal(f.values.window, 1048576);
    assert_int_equal(f.values.tls, 0);
    assert_int_equal(f.values.level, 0);
    assert_int_equal(f.values.extra->count, 2);
    assert_string_equal(f.values.extra->names[1], "b");
    assert_string_equal(f.values.extra->values[1], "2");
    assert_int_equal(f.values.hosts->count, 2);
    assert_string_equal(f.values.hosts->values[0], "x");
    discard(&f);
}

static void test_maps_with_dots(void **state)
{
    fixture f;
    (void)state;
    assert_int_equal(parse(&f, "port = 1; extra = [\"linger.ms=5\", \"a=b=c\"];"), WB_OK);
    assert_string_equal(f.values.extra->names[0], "linger.ms");
    assert_string_equal(f.values.extra->values[0], "5");
    assert_string_equal(f.values.extra->values[1], "b=c");
    discard(&f);
    assert_int_equal(parse(&f, "port = 1; extra = (\"a=1\", \"=2\", \"a=3\", 4);"), WB_FATAL);
    assert_error_count(&f.problems, 3);
    assert_problem(&f.problems, "= \"=2\" is not of the form \"name=value\"");
    assert_problem(&f.problems, "= \"a=3\" gives a name a second time");
    discard(&f);
}

static void assert_path(const char *written, const char *expected)
{
    char text[200];
    fixture f;
    (void)snprintf(text, sizeof text, "port = 1; file = \"%s\";", written);
    assert_int_equal(parse(&f, text), WB_OK);
    assert_string_equal(f.values.file, expected);
    discard(&f);
}

static const char *in_directory(const char *directory, const char *name)
{
    static char path[2 * PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void test_paths(void **state)
{
    (void)state;
    assert_path("data.db", in_directory(conf_directory, "data.db"));
    assert_path("over/../there.db", in_directory(conf_directory, "over/../there.db"));
    assert_path("/srv/data.db", "/srv/data.db");
    static const char *const unchanged[] = { "", ":memory:", "https://here/", "pkcs11:slot", "system" };
    for (size_t i = 0; i < sizeof unchanged / sizeof *unchanged; i++)
        assert_path(unchanged[i], unchanged[i]);
    assert_path("C:data", in_directory(conf_directory, "C:data")); /* one letter is no scheme */
    assert_path("a/b:c", in_directory(conf_directory, "a/b:c"));

    fixture f;
    assert_int_equal(parse(&f, "port = 1;"), WB_OK);
    assert_string_equal(f.values.file, in_directory(conf_directory, "default.db"));
    discard(&f);
    assert_int_equal(parse(&f, "port = 1; file = 5;"), WB_FATAL);
    assert_problem(&f.problems, "option \"file\" = 5 is not a string");
    discard(&f);
}

/* A file that is named by a relative path itself: what starts there is absolute, all the same. */
static void test_paths_outlive_the_directory(void **state)
{
    char before[PATH_MAX];
    fixture f;
    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(conf_directory), 0);
    const char *path = wb_conf_absolute((wb_arena_init(&f.arena, 64), &f.arena), (wb_conf_origin){ .file = "sub/x.conf" }, "data.db");
    assert_string_equal(path, in_directory(conf_directory, "sub/data.db"));
    path = wb_conf_absolute(&f.arena, (wb_conf_origin){ .file = "x.conf" }, "data.db");
    assert_string_equal(path, in_directory(conf_directory, "data.db"));
    wb_arena_free(&f.arena);
    assert_int_equal(chdir(before), 0);
}

/* There it was once looked for: nobody goes on with an empty one in silence. */
static void test_a_file_at_the_old_place_is_named(void **state)
{
    char before[PATH_MAX], directory[] = "/tmp/waybill-old-XXXXXX", expected[3 * PATH_MAX];
    fixture f;
    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    FILE *old = fopen("old.db", "w");
    assert_non_null(old);
    assert_int_equal(fclose(old), 0);
    assert_int_equal(parse(&f, "port = 1; file = \"old.db\";"), WB_FATAL);
    (void)snprintf(expected, sizeof expected, "there is no \"%s/old.db\", but there is \"%s/old.db\"", conf_directory, directory);
    assert_problem(&f.problems, expected);
    discard(&f);
    (void)conf_write("old.db", "");
    assert_path("old.db", in_directory(conf_directory, "old.db")); /* and now there is one */
    assert_int_equal(unlink("old.db"), 0);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void test_wrong_types(void **state)
{
    fixture f;
    (void)state;
    parse(&f, "host = 1; port = \"1\"; timeout = 5; window = 1.5; tls = 1;\n"
              "level = 2; extra = 3; hosts = { };");
    assert_error_count(&f.problems, 8);
    assert_problem(&f.problems, "subject: option \"host\" = 1 is not a string");
    assert_problem(&f.problems, "option \"port\" = \"1\" is not an integer (write a whole number");
    assert_problem(&f.problems, "option \"timeout\" = 5 is not a duration");
    assert_problem(&f.problems, "option \"window\" = 1.5 is not a size");
    assert_problem(&f.problems, "option \"tls\" = 1 is not a boolean");
    assert_problem(&f.problems, "option \"level\" = 2 is none of: \"low\", \"high\"");
    assert_problem(&f.problems, "option \"extra\" = 3 is not a group");
    assert_problem(&f.problems, ":2: subject: option \"hosts\" = { ... } is not a list");
    discard(&f);
}

static void test_required(void **state)
{
    fixture f;
    (void)state;
    assert_int_equal(parse(&f, "host = \"h\";"), WB_FATAL);
    assert_error_count(&f.problems, 1);
    assert_problem(&f.problems, "subject: option \"port\" is missing: the port");
    discard(&f);
}

static void test_overflow(void **state)
{
    fixture f;
    (void)state;
    parse(&f, "port = 1; timeout = \"99999999d\"; window = \"99999999TiB\";");
    assert_problem(&f.problems, "option \"timeout\" = \"99999999d\" is too large");
    assert_problem(&f.problems, "option \"window\" = \"99999999TiB\" is too large");
    discard(&f);
}

static void test_literal_secret_is_a_warning(void **state)
{
    fixture f;
    (void)state;
    assert_int_equal(parse(&f, "port = 1; password = \"hunter2\";"), WB_OK);
    assert_int_equal(f.problems.error_count, 0);
    assert_int_equal(f.problems.count, 1);
    assert_problem(&f.problems, "warning: subject: option \"password\" holds a secret in clear");
    assert_no_problem(&f.problems, "hunter2");
    discard(&f);
    /* of a wrong type: still hidden */
    parse(&f, "port = 1; password = 314159;");
    assert_problem(&f.problems, "option \"password\" = (hidden) is not a string");
    assert_no_problem(&f.problems, "314159");
    discard(&f);
}

static void test_secret_from_environment(void **state)
{
    fixture f;
    (void)state;
    setenv("WAYBILL_TEST_SECRET", "from environment", 1);
    assert_int_equal(parse(&f, "port = 1; password = \"env:WAYBILL_TEST_SECRET\";"), WB_OK);
    assert_int_equal(f.problems.count, 0);
    assert_string_equal(f.values.password, "from environment");
    discard(&f);
    parse(&f, "port = 1; host = \"env:WAYBILL_TEST_ABSENT\"; password = \"env:\";");
    assert_problem(&f.problems, "option \"host\": environment variable \"WAYBILL_TEST_ABSENT\" is "
                                "not set");
    assert_error_count(&f.problems, 2);
    discard(&f);
}

static void test_secret_from_file(void **state)
{
    fixture f;
    (void)state;
    static const char text[] = "port = 1;\npassword = \"file:secret\";";
    char path[256];
    (void)snprintf(path, sizeof path, "%s", conf_write("secret", "s3cret\n\n"));
    assert_int_equal(parse(&f, text), WB_OK);
    assert_int_equal(f.problems.count, 0);
    assert_string_equal(f.values.password, "s3cret\n"); /* one newline is trimmed, not two */
    discard(&f);

    static const mode_t bad[] = { 0604, 0602, 0644, 0620, 0666 };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(chmod(path, bad[i]), 0);
        assert_int_equal(parse(&f, text), WB_FATAL);
        assert_problem(&f.problems, ":2: subject: option \"password\": secret file \"");
        assert_problem(&f.problems, "lets others read or change it; use chmod 0600");
        assert_no_problem(&f.problems, "s3cret");
        discard(&f);
    }
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(parse(&f, text), WB_OK);
    discard(&f);
    if (geteuid() == 0) { /* only root can give a file away */
        assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
        assert_int_equal(parse(&f, text), WB_FATAL);
        assert_problem(&f.problems, "belongs to uid 65534; it must belong to root or uid 0");
        discard(&f);
        assert_int_equal(chown(path, 0, (gid_t)-1), 0);
    }
    conf_write_bytes("secret", "a\0b", 3);
    parse(&f, text);
    assert_problem(&f.problems, "holds a NUL byte");
    discard(&f);
    assert_int_equal(unlink(path), 0);
    parse(&f, text);
    assert_problem(&f.problems, "cannot open secret file");
    discard(&f);
    assert_int_equal(mkfifo(path, 0600), 0);
    parse(&f, text);
    assert_problem(&f.problems, "is not a regular file");
    discard(&f);
    parse(&f, "port = 1; password = \"file:\";");
    assert_problem(&f.problems, "\"file:\" names no file");
    discard(&f);
}

static void test_values_cannot_forge_a_line(void **state)
{
    fixture f;
    (void)state;
    parse(&f, "port = 1; level = \"x\\n/etc/other.conf:1: \\x1b[31mfine\";");
    assert_int_equal(f.problems.count, 1);
    assert_null(strchr(f.problems.items[0].text, '\n'));
    assert_null(strchr(f.problems.items[0].text, 0x1b));
    discard(&f);
}

/* A plugin built with a shorter or a longer option struct. */
static void test_strides(void **state)
{
    fixture f;
    struct {
        wb_option option;
        char more[24];
    } longer[TABLE_COUNT];
    (void)state;
    assert_int_equal(parse(&f, "port = 7;"), WB_OK);
    memset(longer, 0x55, sizeof longer);
    for (size_t i = 0; i < TABLE_COUNT; i++)
        longer[i].option = table[i];
    wb_option_scope scope = { &f.arena, &f.secrets, &f.problems, "", NULL };
    const wb_conf_node *root =
        wb_conf_read(&f.arena, conf_write("options.conf", "port = 8;"), &f.problems);
    assert_int_equal(wb_options_parse(&scope, &longer[0].option, TABLE_COUNT, sizeof longer[0],
                                      root, root->at, &f.values, NULL),
                     WB_OK);
    assert_int_equal(f.values.port, 8);
    wb_option shorter = wb_option_at(&longer[0].option, offsetof(wb_option, help), 0);
    assert_null(shorter.help);
    discard(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_formats_read_back),
        cmocka_unit_test(test_suggestions),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_maps_with_dots),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_paths_outlive_the_directory),
        cmocka_unit_test(test_a_file_at_the_old_place_is_named),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_literal_secret_is_a_warning),
        cmocka_unit_test(test_secret_from_environment),
        cmocka_unit_test(test_secret_from_file),
        cmocka_unit_test(test_values_cannot_forge_a_line),
        cmocka_unit_test(test_strides),
    };
    return cmocka_run_group_tests_name("options", tests, conf_setup, conf_teardown);
}

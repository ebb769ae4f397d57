/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plugin's descriptor may say: capabilities with their operations, options with their defaults; and what
 * its create() may answer.
 */
#include <config.h>

/* before cmocka.h, which defines a macro "fail" */
#include "core/base/host.h"
#include "core/config/configuration.h"
#include "core/plugin/abi.h"
#include "core/plugin/instance.h"
#include "tests/unit/conf_support.h"

/* A table of operations of which none is called, with those that every persistence has. */
#define HAS(ops, field) memset(&(ops)->field, 1, sizeof(ops)->field)

static void fill_least(wb_persistence_ops *ops)
{
    memset(ops, 0, sizeof *ops);
    ops->struct_size = sizeof *ops;
    HAS(ops, create), HAS(ops, destroy), HAS(ops, schema), HAS(ops, install), HAS(ops, verify), HAS(ops, open);
    HAS(ops, close), HAS(ops, begin), HAS(ops, interface), HAS(ops, check), HAS(ops, commit), HAS(ops, rollback);
}

static void fill_least_transport(wb_transport_ops *ops)
{
    memset(ops, 0, sizeof *ops);
    ops->struct_size = sizeof *ops;
    HAS(ops, create), HAS(ops, destroy), HAS(ops, install), HAS(ops, verify), HAS(ops, open), HAS(ops, close);
    HAS(ops, receive), HAS(ops, acknowledge), HAS(ops, give_back), HAS(ops, send), HAS(ops, interrupt);
}

/* The parts of a store of delayed messages: all are called, but the last two, which are optional together. */
static void test_half_a_delayed_store(void **state)
{
    static wb_delayed_ops half;
    static wb_persistence_ops ops;
    static const wb_plugin plugin = { .struct_size = sizeof plugin, .magic = WB_PLUGIN_MAGIC,
                                      .abi_major = WB_PLUGIN_ABI_MAJOR, .kind = WB_PLUGIN_PERSISTENCE,
                                      .name = "half", .version = "1", .summary = "half a store",
                                      .capabilities = WB_CAP_DELAY_STORE, .ops = &ops };
    wb_error error = { 0 };
    (void)state;
    fill_least(&ops);
    memset(&half, 1, sizeof half);
    ops.delayed = &half;
    half.struct_size = offsetof(wb_delayed_ops, begin_fetch);
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_OK);
    half.release = NULL;
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_FATAL);
    assert_non_null(strstr(error.text, "its operation \"delayed.release\" is missing"));
    memset(&half, 1, sizeof half);
    half.struct_size = offsetof(wb_delayed_ops, reschedule);
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_FATAL);
    assert_non_null(strstr(error.text, "its operation \"delayed.reschedule\" is missing"));
    half.struct_size = offsetof(wb_delayed_ops, end_fetch);
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_FATAL);
    assert_non_null(strstr(error.text, "of \"delayed.begin_fetch\" and \"delayed.end_fetch\" one is missing"));
    half.struct_size = sizeof half;
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_OK);
    half.begin_fetch = NULL;
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_FATAL);
}

static void test_half_an_interface_in_sql(void **state)
{
    static wb_written_ops half;
    static wb_persistence_ops ops;
    static const wb_plugin plugin = { .struct_size = sizeof plugin, .magic = WB_PLUGIN_MAGIC,
                                      .abi_major = WB_PLUGIN_ABI_MAJOR, .kind = WB_PLUGIN_PERSISTENCE,
                                      .name = "half", .version = "1", .summary = "half an interface",
                                      .capabilities = WB_CAP_OUTBOX | WB_CAP_WRITTEN, .ops = &ops };
    wb_error error = { 0 };
    (void)state;
    fill_least(&ops);
    HAS(&ops, mark), HAS(&ops, pending), HAS(&ops, sweep), HAS(&ops, clean_up);
    memset(&half, 1, sizeof half);
    ops.written = &half;
    half.struct_size = sizeof half;
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_OK);
    half.settle = NULL;
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_FATAL);
    assert_non_null(strstr(error.text, "its operation \"written.settle\" is missing"));
    ops.written = NULL;
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "half", "half.so", &error), WB_FATAL);
    assert_non_null(strstr(error.text, "its operation \"written\" is missing"));
}

static void expect_persistence(const wb_persistence_ops *ops, uint64_t capabilities, const char *reason)
{
    const wb_plugin plugin = { .struct_size = sizeof plugin, .magic = WB_PLUGIN_MAGIC,
                               .abi_major = WB_PLUGIN_ABI_MAJOR, .kind = WB_PLUGIN_PERSISTENCE,
                               .name = "ids", .version = "1", .summary = "a store of ids",
                               .capabilities = capabilities, .ops = ops };
    wb_error error = { 0 };
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_PERSISTENCE, "ids", "ids.so", &error), reason ? WB_FATAL : WB_OK);
    if (reason && !strstr(error.text, reason))
        fail_msg("expected \"%s\" in: %s", reason, error.text);
}

static void expect_missing(const wb_persistence_ops *ops, uint64_t capabilities, const char *missing)
{
    char sentence[64];
    (void)snprintf(sentence, sizeof sentence, "its operation \"%s\" is missing", missing);
    expect_persistence(ops, capabilities, sentence);
}

static void expect_observer(const wb_observer_ops *ops, uint64_t capabilities, const char *reason)
{
    const wb_plugin plugin = { .struct_size = sizeof plugin, .magic = WB_PLUGIN_MAGIC,
                               .abi_major = WB_PLUGIN_ABI_MAJOR, .kind = WB_PLUGIN_OBSERVER,
                               .name = "eye", .version = "1", .summary = "an observer",
                               .capabilities = capabilities, .ops = ops };
    wb_error error = { 0 };
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_OBSERVER, "eye", "eye.so", &error), reason ? WB_FATAL : WB_OK);
    if (reason && !strstr(error.text, reason))
        fail_msg("expected \"%s\" in: %s", reason, error.text);
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_TRANSPORT, "eye", "eye.so", &error), WB_FATAL);
    assert_non_null(strstr(error.text, "it is an observer plugin, a transport was wanted"));
}

/* It sees something, what it says, and is no other kind. */
static void test_an_observer(void **state)
{
    wb_observer_ops all, ops;
    (void)state;
    memset(&all, 0, sizeof all);
    all.struct_size = sizeof all;
    HAS(&all, create), HAS(&all, destroy), HAS(&all, start), HAS(&all, stop), HAS(&all, handled);
    expect_observer(&all, WB_CAP_SEES_HANDLED, NULL);
    expect_observer(&all, WB_CAP_SEES_HANDLED | UINT64_C(1) << 62, NULL); /* a later version's: ignored */
    expect_observer(&all, 0, "it declares nothing that it sees");
    expect_observer(&all, UINT64_C(1) << 62, "it declares nothing that it sees");
    expect_observer(&all, WB_CAP_SEES_HANDLED | WB_CAP_SEES_SENT, "declares \"sees_sent\", but its operation \"sent\" is missing");
    expect_observer(&all, WB_CAP_SEES_HANDLED | WB_CAP_OUTBOX, "it is an observer plugin, but declares \"outbox\"");
    expect_observer(&all, WB_CAP_SEES_HANDLED | WB_CAP_DELAY, "it is an observer plugin, but declares \"delay\"");
    ops = all, HAS(&ops, failed);
    expect_observer(&ops, WB_CAP_SEES_HANDLED, "it has the operation \"failed\", but does not declare \"sees_failed\"");
    ops = all, HAS(&ops, samples); /* which is optional */
    expect_observer(&ops, WB_CAP_SEES_HANDLED, NULL);
#define MISSES(field) ops = all, ops.field = NULL, expect_observer(&ops, WB_CAP_SEES_HANDLED, "its operation \"" #field "\" is missing")
    MISSES(create), MISSES(destroy), MISSES(start), MISSES(stop);
#undef MISSES
}

/* Nor has another kind what observers have. */
static void test_not_an_observer(void **state)
{
    wb_persistence_ops least;
    (void)state;
    fill_least(&least);
    expect_persistence(&least, WB_CAP_SEES_SENT, "it is a persistence plugin, but declares \"sees_sent\"");
}

/* What remembers ids for others, and can do nothing else, has no batches. */
static void test_a_store_of_ids(void **state)
{
    wb_persistence_ops all, ops;
    (void)state;
    memset(&all, 0, sizeof all);
    all.struct_size = sizeof all;
    HAS(&all, create), HAS(&all, destroy), HAS(&all, schema), HAS(&all, install), HAS(&all, verify), HAS(&all, open);
    HAS(&all, close), HAS(&all, find), HAS(&all, clean_up), HAS(&all, remember);
    expect_persistence(&all, WB_CAP_REMEMBER, NULL);
    expect_persistence(&all, WB_CAP_REMEMBER | UINT64_C(1) << 62, NULL); /* a later version's: ignored */
#define NEEDS(field) ops = all, ops.field = NULL, expect_missing(&ops, WB_CAP_REMEMBER, #field)
    NEEDS(create), NEEDS(destroy), NEEDS(schema), NEEDS(install), NEEDS(verify), NEEDS(open), NEEDS(close);
    NEEDS(find), NEEDS(clean_up), NEEDS(remember);
    expect_missing(&all, 0, "begin");
    expect_missing(&all, WB_CAP_REMEMBER | WB_CAP_OUTBOX, "begin");
    expect_missing(&all, WB_CAP_REMEMBER | WB_CAP_OUTBOX | WB_CAP_FORGET, "begin");
    HAS(&all, begin), HAS(&all, interface), HAS(&all, check), HAS(&all, commit), HAS(&all, rollback);
    HAS(&all, mark), HAS(&all, pending), HAS(&all, sweep);
    expect_missing(&all, WB_CAP_REMEMBER | WB_CAP_OUTBOX | WB_CAP_FORGET, "forget");
    HAS(&all, forget);
    expect_persistence(&all, WB_CAP_REMEMBER | WB_CAP_OUTBOX | WB_CAP_FORGET, NULL);
}

/* Each capability with all of its operations, or neither. */
static void test_capabilities_and_operations(void **state)
{
    wb_persistence_ops least, ops;
    (void)state;
    fill_least(&least);
    expect_persistence(&least, 0, NULL);
    static const uint64_t one_each[] = { WB_CAP_OUTBOX, WB_CAP_JOIN_TRANSPORT, WB_CAP_DELAY_STORE, WB_CAP_REMEMBER,
                                       WB_CAP_REMOVE_TABLES, WB_CAP_SUBSCRIPTIONS };
    for (size_t i = 0; i < sizeof one_each / sizeof one_each[0]; i++)
        expect_persistence(&least, one_each[i], "is missing");
#define UNUSED(field, names)                                                                       \
    ops = least, HAS(&ops, field),                                                                 \
    expect_persistence(&ops, 0, "it has the operation \"" #field "\", but does not declare \"" names "\"")
    UNUSED(mark, "outbox"), UNUSED(pending, "outbox"), UNUSED(sweep, "outbox");
    UNUSED(clean_up, "outbox\" or \"remember"), UNUSED(join, "join_transport"), UNUSED(delayed, "delay_store");
    UNUSED(find, "claim_with_commit\" or \"remember"), UNUSED(written, "written"), UNUSED(positions, "positions");
    UNUSED(forget_positions, "positions"), UNUSED(forget, "forget"), UNUSED(remember, "remember");
    UNUSED(uninstall, "remove_tables"), UNUSED(rename, "remove_tables");
    UNUSED(note_subscriptions, "subscriptions"), UNUSED(subscriptions, "subscriptions");
    ops = least, HAS(&ops, shared_resource), HAS(&ops, clock), HAS(&ops, stats);
    expect_persistence(&ops, 0, NULL);
    ops = least, HAS(&ops, mark), HAS(&ops, pending), HAS(&ops, sweep), HAS(&ops, clean_up);
    expect_persistence(&ops, WB_CAP_OUTBOX, NULL);
    expect_persistence(&ops, WB_CAP_OUTBOX | WB_CAP_DELAY_WITH_COMMIT,
                       "it declares \"delay_with_commit\", which is nothing without \"delay_store\"");
    expect_persistence(&ops, WB_CAP_OUTBOX | WB_CAP_PUBLISH | WB_CAP_DELAY,
                       "it is a persistence plugin, but declares \"delay\" and \"publish\"");
    expect_persistence(&ops, WB_CAP_OUTBOX | UINT64_C(1) << 62, NULL); /* a later version's */
    HAS(&ops, find), HAS(&ops, positions); /* which it may need, too */
    expect_persistence(&ops, WB_CAP_OUTBOX, "it has the operation \"find\", but does not declare");
    expect_persistence(&ops, WB_CAP_OUTBOX | UINT64_C(1) << 62, NULL);
    static const uint64_t additions[] = { WB_CAP_CLAIM_WITH_COMMIT, WB_CAP_WRITTEN, WB_CAP_POSITIONS, WB_CAP_FORGET };
    for (size_t i = 0; i < sizeof additions / sizeof additions[0]; i++)
        expect_persistence(&least, additions[i], "which is nothing without \"outbox\"");
    /* a shorter table is one without what follows */
    ops = least, HAS(&ops, mark), HAS(&ops, pending), HAS(&ops, sweep), HAS(&ops, clean_up);
    ops.struct_size = offsetof(wb_persistence_ops, clean_up);
    expect_missing(&ops, WB_CAP_OUTBOX, "clean_up");
    ops.struct_size = offsetof(wb_persistence_ops, clock);
    expect_persistence(&ops, WB_CAP_OUTBOX, NULL);
}

/* ---- tables of options ---- */

typedef struct {
    const char *text;
    int64_t number;
    int32_t flag;
    int32_t choice;
    const wb_option_list *list;
    const wb_option_map *map;
} some_config;

static const char *const some_choices[] = { "low", "high", NULL };

#define OPTION(is_called, of_type, at) .name = (is_called), .type = (of_type), .offset = offsetof(some_config, at)

static void expect_options(const wb_option *table, size_t count, size_t stride, const char *reason)
{
    wb_transport_ops ops;
    wb_error error = { 0 };
    fill_least_transport(&ops);
    wb_plugin plugin = { .struct_size = sizeof plugin, .magic = WB_PLUGIN_MAGIC, .abi_major = WB_PLUGIN_ABI_MAJOR,
                         .kind = WB_PLUGIN_TRANSPORT, .name = "queue", .version = "1", .summary = "a queue",
                         .capabilities = WB_CAP_MODE_NONE, .ops = &ops };
    plugin.options = table;
    plugin.option_count = count;
    plugin.option_stride = stride;
    plugin.config_size = sizeof(some_config);
    assert_int_equal(wb_plugin_check(&plugin, WB_PLUGIN_TRANSPORT, "queue", "queue.so", &error),
                     reason ? WB_FATAL : WB_OK);
    if (reason && !strstr(error.text, reason))
        fail_msg("expected \"%s\" in: %s", reason, error.text);
}

/* One wrong row behind a right one. */
static void expect_option(wb_option option, const char *reason)
{
    const wb_option table[] = { { OPTION("first", WB_OPTION_STRING, text) }, option };
    expect_options(table, 2, sizeof table[0], reason);
}

static void test_option_tables(void **state)
{
    const wb_option good = { OPTION("number", WB_OPTION_INTEGER, number) };
    (void)state;
    expect_option(good, NULL);
    expect_options(NULL, 3, sizeof good, "its option table is malformed: it has 3 options by its count, but no table");
    expect_options(&good, 1, 40, "its option table is malformed: its options are 40 bytes apart, one of ABI 1.0 has ");
    expect_option((wb_option){ OPTION(NULL, WB_OPTION_STRING, number) },
                  "its option table is malformed: option 2 of 2 has no name");
    expect_option((wb_option){ OPTION("", WB_OPTION_STRING, number) }, "option 2 of 2 has no name");
    expect_option((wb_option){ OPTION("first", WB_OPTION_INTEGER, number) },
                  "its options 1 and 2 are both called \"first\"");
    expect_option((wb_option){ OPTION("second", WB_OPTION_INTEGER, text) },
                  "its options \"first\" and \"second\" overlap in the configuration struct");
    expect_option((wb_option){ OPTION("plugin", WB_OPTION_STRING, number) }, "its option \"plugin\" has a reserved name");
    expect_option((wb_option){ OPTION("new", 77, number) }, "its option \"new\" has a type this host does not know");
    for (uint32_t bit = 8; bit; bit <<= 1)
        expect_option((wb_option){ OPTION("flagged", WB_OPTION_INTEGER, number), .flags = WB_OPTION_SECRET | bit },
                      "its option \"flagged\" has a flag this host does not know; use a newer waybill");
    expect_option((wb_option){ OPTION("none", WB_OPTION_CHOICE, choice) }, "its option \"none\" has no choices");
    expect_option((wb_option){ .name = "far", .type = WB_OPTION_STRING, .offset = sizeof(some_config) },
                  "its option \"far\" lies outside of the configuration struct");
    expect_option((wb_option){ .name = "odd", .type = WB_OPTION_STRING, .offset = offsetof(some_config, choice) },
                  "its option \"odd\" is not aligned");
    expect_option((wb_option){ OPTION("n", WB_OPTION_INTEGER, number), .minimum = 2, .maximum = 1 },
                  "its option \"n\" has a range from more to less");
}

/* The plugin's, not the user's: found when it is loaded, whatever the file says. */
static void test_defaults_of_plugins(void **state)
{
    static const struct {
        wb_option option;
        const char *reason; /* NULL: it is right */
    } all[] = {
        { { OPTION("n", WB_OPTION_INTEGER, number), .default_text = "-5" }, NULL },
        { { OPTION("n", WB_OPTION_INTEGER, number), .default_text = "5x" },
          "its own default is wrong: option \"n\" = \"5x\" is not an integer" },
        { { OPTION("n", WB_OPTION_INTEGER, number), .default_text = "" }, "option \"n\" = \"\" is not an integer" },
        { { OPTION("n", WB_OPTION_INTEGER, number), .default_text = " 5" }, "is not an integer" },
        { { OPTION("n", WB_OPTION_INTEGER, number), .default_text = "99999999999999999999" }, "is not an integer" },
        { { OPTION("n", WB_OPTION_INTEGER, number), .default_text = "9", .minimum = 1, .maximum = 5 },
          "option \"n\" = \"9\" is out of range (1 to 5)" },
        { { OPTION("b", WB_OPTION_BOOLEAN, flag), .default_text = "true" }, NULL },
        { { OPTION("b", WB_OPTION_BOOLEAN, flag), .default_text = "yes" }, "option \"b\" = \"yes\" is not a boolean" },
        { { OPTION("d", WB_OPTION_DURATION, number), .default_text = "10s" }, NULL },
        { { OPTION("d", WB_OPTION_DURATION, number), .default_text = "10" }, "option \"d\" = \"10\" is not a duration" },
        { { OPTION("s", WB_OPTION_SIZE, number), .default_text = "16MiB" }, NULL },
        { { OPTION("s", WB_OPTION_SIZE, number), .default_text = "16 MB" }, "option \"s\" = \"16 MB\" is not a size" },
        { { OPTION("c", WB_OPTION_CHOICE, choice), .choices = some_choices, .default_text = "high" }, NULL },
        { { OPTION("c", WB_OPTION_CHOICE, choice), .choices = some_choices, .default_text = "hihg" },
          "option \"c\" = \"hihg\" is none of: \"low\", \"high\"; did you mean \"high\"?" },
        { { OPTION("l", WB_OPTION_LIST, list), .default_text = "[\"a\", \"b\"]" }, NULL },
        { { OPTION("l", WB_OPTION_LIST, list), .default_text = "[]" }, NULL },
        { { OPTION("l", WB_OPTION_LIST, list), .default_text = "a, b" }, "option \"l\" = \"a, b\" cannot be read (use e.g. [" },
        { { OPTION("l", WB_OPTION_LIST, list), .default_text = "\"a\"" }, "is not a list" },
        { { OPTION("l", WB_OPTION_LIST, list), .default_text = "[1, 2]" }, "is not a string" },
        { { OPTION("l", WB_OPTION_LIST, list), .default_text = "[]; more = 1" }, "cannot be read" },
        { { OPTION("m", WB_OPTION_MAP, map), .default_text = "{ a = \"b\"; }" }, NULL },
        { { OPTION("m", WB_OPTION_MAP, map), .default_text = "[\"linger.ms=5\"]" }, NULL },
        { { OPTION("m", WB_OPTION_MAP, map), .default_text = "a=b" }, "cannot be read (use e.g. {" },
        { { OPTION("m", WB_OPTION_MAP, map), .default_text = "[\"linger\"]" }, "is not of the form \"name=value\"" },
        { { .name = "t", .type = WB_OPTION_STRING, .offset = offsetof(some_config, list), .default_text = "env:HOME" },
          "option \"t\" = \"env:HOME\" refers to the environment or to a file, which no default can" },
        { { .name = "t", .type = WB_OPTION_STRING, .offset = offsetof(some_config, list), .default_text = "file:/x",
            .flags = WB_OPTION_SECRET },
          "option \"t\" = (hidden) refers to the environment" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_option(all[i].option, all[i].reason);
}

/* ---- create() ---- */

/* What create() does, by what its configuration says. */
typedef struct {
    int result;
    int is_made;
    const char *reason;
} answer;

static char an_instance;

static int answer_as(const wb_host *host, const answer *as, void **ret_instance, wb_error *error)
{
    if (as->is_made)
        *ret_instance = &an_instance;
    return as->reason ? (host->fail)(host, error, as->result, WB_CAUSE_CONFIG, 0, "%s", as->reason) : as->result;
}

static int create_transport(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                            wb_transport **ret_transport, wb_error *error)
{
    (void)endpoint;
    return answer_as(host, config, (void **)ret_transport, error);
}

static int create_persistence(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                              wb_persistence **ret_persistence, wb_error *error)
{
    (void)endpoint;
    return answer_as(host, config, (void **)ret_persistence, error);
}

static void expect_answer(const answer *as, int result, const char *text)
{
    const wb_transport_ops transport_ops = { .struct_size = sizeof transport_ops, .create = create_transport };
    const wb_persistence_ops persistence_ops = { .struct_size = sizeof persistence_ops, .create = create_persistence };
    const wb_plugin transport = { .name = "dumb", .ops = &transport_ops };
    const wb_plugin persistence = { .name = "dumb", .ops = &persistence_ops };
    wb_host_instance host;
    wb_transport *made = NULL;
    wb_persistence *kept = NULL;
    wb_error error = { .text = "of another call" };
    wb_host_init(&host, "orders", "dumb");
    assert_int_equal(wb_transport_create(&transport, &host.host, NULL, as, &made, &error), result);
    assert_string_equal(error.text, text);
    assert_int_equal(error.result, result);
    assert_int_equal(wb_persistence_create(&persistence, &host.host, NULL, as, &kept, &error), result);
    assert_string_equal(error.text, text);
    /* what failed is not destroyed, whatever it left */
    assert_int_equal(made != NULL, result == WB_OK);
    assert_int_equal(kept != NULL, result == WB_OK);
}

static void test_create(void **state)
{
    (void)state;
    expect_answer(&(answer){ WB_OK, 1, NULL }, WB_OK, "");
    expect_answer(&(answer){ WB_FATAL, 1, "no such file" }, WB_FATAL, "no such file");
    expect_answer(&(answer){ WB_OK, 0, NULL }, WB_FATAL,
                  "plugin \"dumb\" says that it was created, but made no instance: that is an error of the plugin");
    expect_answer(&(answer){ WB_NOT_CONNECTED, 0, NULL }, WB_NOT_CONNECTED,
                  "plugin \"dumb\" was not created (not connected), and gave no reason: that is an error of the plugin");
    expect_answer(&(answer){ WB_FATAL, 1, "" }, WB_FATAL,
                  "plugin \"dumb\" was not created (fatal), and gave no reason: that is an error of the plugin");
    expect_answer(&(answer){ -1, 0, NULL }, WB_FATAL,
                  "plugin \"dumb\" was not created, with a result that is no class (-1): that is an error of the plugin");
}

/* ---- open() ---- */

static int open_transport(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                          wb_transport_session **ret_session, wb_error *error)
{
    const answer *as = (const answer *)transport;
    assert_int_equal(purpose, WB_SESSION_SEND);
    assert_int_equal(prefetch, 7);
    if (as->is_made)
        *ret_session = (wb_transport_session *)&an_instance;
    return as->reason ? wb_error_set(error, as->result, WB_CAUSE_OTHER, 0, "%s", as->reason) : as->result;
}

static int open_persistence(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    const answer *as = (const answer *)persistence;
    if (as->is_made)
        *ret_session = (wb_storage_session *)&an_instance;
    return as->reason ? wb_error_set(error, as->result, WB_CAUSE_OTHER, 0, "%s", as->reason) : as->result;
}

/* What fails leaves what the host had. */
static void expect_opened(answer as, int result, const char *transports, const char *persistences)
{
    const wb_transport_ops transport_ops = { .struct_size = sizeof transport_ops, .open = open_transport };
    const wb_persistence_ops persistence_ops = { .struct_size = sizeof persistence_ops, .open = open_persistence };
    wb_transport_session *session = NULL;
    wb_storage_session *storage = NULL;
    wb_error error = { 0 };
    int r = wb_transport_open(&transport_ops, (wb_transport *)&as, WB_SESSION_SEND, 7, &session, &error);
    assert_int_equal(r, result);
    assert_string_equal(error.text, transports);
    assert_ptr_equal(session, result == WB_OK ? &an_instance : NULL);
    wb_error_clear(&error);
    r = wb_persistence_open(&persistence_ops, (wb_persistence *)&as, &storage, &error);
    assert_int_equal(r, result);
    assert_string_equal(error.text, persistences);
    assert_ptr_equal(storage, result == WB_OK ? &an_instance : NULL);
}

static void test_open(void **state)
{
    (void)state;
    expect_opened((answer){ WB_OK, 1, NULL }, WB_OK, "", "");
    expect_opened((answer){ WB_NOT_CONNECTED, 0, "no reply" }, WB_NOT_CONNECTED, "no reply", "no reply");
    expect_opened((answer){ WB_NOT_CONNECTED, 1, "refused" }, WB_NOT_CONNECTED, "refused", "refused");
    expect_opened((answer){ WB_OK, 0, NULL }, WB_FATAL,
                  "the transport says that it opened a session, but made none: that is an error of the plugin",
                  "the persistence says that it opened a session, but made none: that is an error of the plugin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_a_delayed_store),
        cmocka_unit_test(test_half_an_interface_in_sql),
        cmocka_unit_test(test_an_observer),
        cmocka_unit_test(test_not_an_observer),
        cmocka_unit_test(test_a_store_of_ids),
        cmocka_unit_test(test_capabilities_and_operations),
        cmocka_unit_test(test_option_tables),
        cmocka_unit_test(test_defaults_of_plugins),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests_name("abi", tests, NULL, NULL);
}

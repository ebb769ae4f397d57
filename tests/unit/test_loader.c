/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins and handler modules, good ones and one for each way to be refused.
 */
#include <config.h>

#include <limits.h>

/* before cmocka.h, which defines a macro "fail" */
#include "core/endpoint/setup.h"
#include "core/plugin/loader.h"
#include "core/plugin/trust.h"
#include "tests/unit/conf_support.h"

static const char *built(const char *relative)
{
    static char paths[4][PATH_MAX];
    static size_t next;
    char *path = paths[next++ % 4];
    const char *top = getenv("top_builddir");
    (void)snprintf(path, PATH_MAX, "%s/tests/unit/%s", top ? top : ".", relative);
    return path;
}

static int group_setup(void **state)
{
    setenv("WAYBILL_PLUGIN_DIR", built("plugins"), 1);
    return conf_setup(state);
}

/* ---- trust ---- */

static void expect_trust(const char *path, int result, const char *reason)
{
    char canonical[PATH_MAX];
    wb_error error = { 0 };
    assert_int_equal(wb_trust_check(path, canonical, &error), result);
    if (reason && !strstr(error.text, reason))
        fail_msg("expected \"%s\" in: %s", reason, error.text);
    if (result == WB_OK)
        assert_int_equal(canonical[0], '/');
}

static void test_trust(void **state)
{
    char path[PATH_MAX], link_path[PATH_MAX], folder[PATH_MAX];
    (void)state;
    (void)snprintf(path, sizeof path, "%s", conf_write("module.so", "x"));
    /* below /tmp, which everybody may write but is sticky: others cannot touch our directory in it */
    expect_trust(path, WB_OK, NULL);
    static const mode_t bad[] = { 0602, 0620, 0666, 0622 };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(chmod(path, bad[i]), 0);
        expect_trust(path, WB_FATAL, "module.so\" is not trusted: it can be written by others");
    }
    assert_int_equal(chmod(path, 0755), 0);
    expect_trust(path, WB_OK, NULL);

    assert_int_equal(chmod(conf_directory, 0777), 0);
    expect_trust(path, WB_FATAL, "the directory \"");
    /* sticky: others may not touch ours, but put a link to another of our files there */
    assert_int_equal(chmod(conf_directory, 01777), 0);
    expect_trust(path, WB_FATAL, "can be written by others; use chmod go-w");
    assert_int_equal(chmod(conf_directory, 0770), 0);
    expect_trust(path, WB_FATAL, "can be written by others; use chmod go-w");
    assert_int_equal(chmod(conf_directory, 0700), 0);

    (void)snprintf(link_path, sizeof link_path, "%s/link.so", conf_directory);
    assert_int_equal(symlink(path, link_path), 0);
    expect_trust(link_path, WB_FATAL, "is a symbolic link");
    expect_trust(conf_directory, WB_FATAL, "is not a regular file");
    expect_trust("/nonexistent/x.so", WB_FATAL, "cannot read \"/nonexistent/x.so\"");

    /* a linked directory is as good as what it points to */
    (void)snprintf(folder, sizeof folder, "%s/folder", conf_directory);
    assert_int_equal(symlink(conf_directory, folder), 0);
    (void)snprintf(link_path, sizeof link_path, "%s/folder/module.so", conf_directory);
    expect_trust(link_path, WB_OK, NULL);
}

static void test_trust_of_owners(void **state)
{
    char path[PATH_MAX];
    (void)state;
    (void)snprintf(path, sizeof path, "%s", conf_write("owned.so", "x"));
    if (geteuid() != 0)
        return; /* only root can give a file away */
    assert_int_equal(chown(path, 65534, 65534), 0);
    expect_trust(path, WB_FATAL, "belongs neither to root nor to the user that runs this");
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(chown(conf_directory, 65534, 65534), 0);
    expect_trust(path, WB_FATAL, "belongs neither to root nor to the user that runs this");
    assert_int_equal(chown(conf_directory, 0, 0), 0);
    expect_trust(path, WB_OK, NULL);
}

/* ---- plugins ---- */

static void expect_plugin(uint32_t kind, const char *name)
{
    const wb_plugin *plugin = NULL, *again = NULL;
    const char *path = NULL;
    wb_error error = { 0 };
    if (wb_plugin_load(NULL, kind, name, &plugin, &path, &error) != WB_OK)
        fail_msg("%s", error.text);
    assert_string_equal(plugin->name, name);
    assert_int_equal(path[0], '/');
    assert_int_equal(wb_plugin_load(NULL, kind, name, &again, NULL, &error), WB_OK);
    assert_ptr_equal(plugin, again);
}

static void test_good_plugins(void **state)
{
    (void)state;
    expect_plugin(WB_PLUGIN_TRANSPORT, "queue");
    expect_plugin(WB_PLUGIN_TRANSPORT, "file");
    expect_plugin(WB_PLUGIN_TRANSPORT, "late-night");
    expect_plugin(WB_PLUGIN_PERSISTENCE, "file");
    expect_plugin(WB_PLUGIN_PERSISTENCE, "table");
}

static void expect_refusal(uint32_t kind, const char *name, const char *reason)
{
    const wb_plugin *plugin = NULL;
    wb_error error = { 0 };
    assert_int_equal(wb_plugin_load(NULL, kind, name, &plugin, NULL, &error), WB_FATAL);
    assert_null(plugin);
    assert_int_equal(error.cause, WB_CAUSE_CONFIG);
    if (!strstr(error.text, reason))
        fail_msg("expected \"%s\" in: %s", reason, error.text);
}

static void test_refused_plugins(void **state)
{
    static const struct {
        const char *name;
        const char *reason;
    } all[] = {
        { "badmagic", "badmagic.so\" is refused: its descriptor is not one of a waybill plugin" },
        { "badmajor", "it was built for ABI 2, this host offers ABI 1.0; rebuild the plugin" },
        { "badminor", "it needs ABI 1.7, this host offers ABI 1.0; use a newer waybill" },
        { "badsize", "its descriptor has 64 bytes, ABI 1.0 has " },
        { "badkind", "it is a persistence plugin, a transport was wanted" },
        { "badname", "it calls itself \"other\", its file \"badname\"" },
        { "badoption", "its option \"password\" lies outside of the configuration struct" },
        { "badmodes", "it declares no transaction mode" },
        { "badops", "it declares \"sends_atomic_with_receive\", but its operation \"begin\" is missing" },
        { "noentry", "it does not export \"noentry_LTX_wb_plugin\"" },
        { "undefined", "undefined symbol: waybill_test_symbol_nobody_has" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_refusal(WB_PLUGIN_TRANSPORT, all[i].name, all[i].reason);
}

static void test_search(void **state)
{
    (void)state;
    expect_refusal(WB_PLUGIN_TRANSPORT, "quueu", "there is no transport plugin \"quueu\" in \"");
    expect_refusal(WB_PLUGIN_TRANSPORT, "quueu", "did you mean \"queue\"?");
    expect_refusal(WB_PLUGIN_PERSISTENCE, "postgres", "; there is \"");
    expect_refusal(WB_PLUGIN_PERSISTENCE, "postgres", "\"shelf\", \"table\"");
    /* the other kind is another plugin */
    expect_refusal(WB_PLUGIN_PERSISTENCE, "queue", "there is no persistence plugin \"queue\"");
    static const char *const bad[] = { "", "../transport/queue", "/etc/passwd", "Queue", "a.b" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_refusal(WB_PLUGIN_TRANSPORT, bad[i], "is not the name of a plugin");
}

static void copy_file(const char *from, const char *to)
{
    char data[65536];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    size_t size;
    assert_non_null(in);
    assert_non_null(out);
    while ((size = fread(data, 1, sizeof data, in)) > 0)
        assert_int_equal(fwrite(data, 1, size, out), size);
    assert_int_equal(fclose(in) | fclose(out), 0);
}

/* plugin_path adds places with the installed layout, and they are under the same rules. */
static void test_plugin_path(void **state)
{
    char folder[PATH_MAX], path[PATH_MAX];
    wb_problems problems = { 0 };
    const wb_plugin *plugin;
    wb_error error;
    (void)state;
    (void)snprintf(folder, sizeof folder, "%s/transport", conf_directory);
    (void)snprintf(path, sizeof path, "%.4000s/queue.so", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    copy_file(built("plugins/transport/queue/.libs/queue.so"), path);
    setenv("WAYBILL_PLUGIN_DIR", "/nonexistent", 1);
    const char *conf = conf_write("path.conf", "plugin_path = [\".\"];");
    wb_config *config = wb_config_load(conf, &problems);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(wb_plugin_load(config, WB_PLUGIN_TRANSPORT, "queue", &plugin, NULL, &error),
                     WB_FATAL);
    assert_non_null(strstr(error.text, "queue.so\" is not trusted: it can be written by others"));
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(wb_plugin_load(config, WB_PLUGIN_TRANSPORT, "queue", &plugin, NULL, &error),
                     WB_OK);
    wb_plugin_files files;
    wb_plugin_files_list(config, &files);
    assert_int_equal(files.count, 1);
    assert_string_equal(files.items[0].name, "queue");
    wb_plugin_files_free(&files);
    setenv("WAYBILL_PLUGIN_DIR", built("plugins"), 1);
    wb_config_free(config);
    wb_problems_free(&problems);
    assert_int_equal(unlink(path) | rmdir(folder), 0);
}

static int has_more_rights;

/* For the loader: as if the program were owned by another user, and set-user-ID. */
__attribute__((visibility("default"))) char *secure_getenv(const char *name)
{
    return has_more_rights ? NULL : getenv(name);
}

/* Who runs a program with more rights than his own does not say what is loaded into it. */
static void test_more_rights_than_the_caller(void **state)
{
    wb_plugin_files files;
    (void)state;
    expect_plugin(WB_PLUGIN_TRANSPORT, "queue");
    has_more_rights = 1;
    expect_refusal(WB_PLUGIN_TRANSPORT, "queue", "there is no transport plugin \"queue\" in \"");
    wb_plugin_files_list(NULL, &files);
    has_more_rights = 0;
    for (size_t i = 0; i < files.count; i++)
        assert_null(strstr(files.items[i].path, built("plugins")));
    wb_plugin_files_free(&files);
    expect_plugin(WB_PLUGIN_TRANSPORT, "queue");
}

/* The same object is no plugin of another kind, however it is found. */
static void test_one_file_for_both_kinds(void **state)
{
    char path[PATH_MAX];
    wb_problems problems = { 0 };
    const wb_plugin *plugin = NULL;
    wb_error error;
    (void)state;
    (void)snprintf(path, sizeof path, "%s/queue.so", conf_directory);
    copy_file(built("plugins/transport/queue/.libs/queue.so"), path);
    assert_int_equal(chmod(path, 0644), 0);
    setenv("WAYBILL_PLUGIN_DIR", "/nonexistent", 1);
    wb_config *config = wb_config_load(conf_write("both.conf", "plugin_path = [\".\"];"), &problems);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wb_plugin_load(config, WB_PLUGIN_TRANSPORT, "queue", &plugin, NULL, &error), WB_OK);
        assert_int_equal(wb_plugin_load(config, WB_PLUGIN_PERSISTENCE, "queue", &plugin, NULL, &error), WB_FATAL);
        assert_non_null(strstr(error.text, "queue.so\" is refused: it is a transport plugin, a persistence was wanted"));
    }
    wb_config_free(config);
    wb_problems_free(&problems);
    setenv("WAYBILL_PLUGIN_DIR", built("plugins"), 1);
    assert_int_equal(unlink(path), 0);
}

static void cut(const char *from, const char *to, long size)
{
    copy_file(from, to);
    assert_int_equal(chmod(to, 0644) | truncate(to, size), 0);
}

/* A sentence, whatever is missing: the end, segments, or the headers themselves. Only one that is complete
 * is run, and says then that it has another name. */
static void test_files_cut_short(void **state)
{
    const char *whole = built("plugins/transport/queue/.libs/queue.so");
    char folder[PATH_MAX], path[PATH_MAX], name[16];
    const wb_plugin *plugin = NULL;
    struct stat st;
    unsigned cuts = 0;
    wb_error error;
    (void)state;
    assert_int_equal(stat(whole, &st), 0);
    (void)snprintf(folder, sizeof folder, "%s/transport", conf_directory);
    assert_int_equal(mkdir(folder, 0700), 0);
    setenv("WAYBILL_PLUGIN_DIR", conf_directory, 1);
    for (int i = 0; i <= 16; i++) {
        (void)snprintf(name, sizeof name, "cut%d", i);
        (void)snprintf(path, sizeof path, "%.4000s/%s.so", folder, name);
        cut(whole, path, st.st_size * i / 16);
        assert_int_equal(wb_plugin_load(NULL, WB_PLUGIN_TRANSPORT, name, &plugin, NULL, &error), WB_FATAL);
        assert_non_null(strstr(error.text, ".so\" is refused: "));
        cuts += strstr(error.text, "the file is cut short: it has ") != NULL;
        assert_int_equal(unlink(path), 0);
    }
    assert_in_range(cuts, 2, 16);
    assert_non_null(strstr(error.text, "does not export \"cut16_LTX_wb_plugin\""));
    setenv("WAYBILL_PLUGIN_DIR", built("plugins"), 1);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- handler modules ---- */

/* What a set names belongs to its configuration, which lives until the next one. */
static wb_config *handlers_config;

static int load_handlers(const char *list, wb_handler_set *set, wb_problems *problems)
{
    char text[4 * PATH_MAX];
    memset(problems, 0, sizeof *problems);
    (void)snprintf(text, sizeof text,
                   "endpoints = ( { name = \"orders\"; transport = { plugin = \"queue\"; };\n"
                   "handlers = [\n%s ]; } );",
                   list);
    wb_config_free(handlers_config);
    handlers_config = wb_config_load(conf_write("handlers.conf", text), problems);
    assert_error_count(problems, 0);
    int result = wb_handlers_load(handlers_config, &handlers_config->endpoints[0], set, problems);
    if (set->count)
        assert_int_equal(set->entries[0].module[0], '/');
    return result;
}

static const char *quoted(const char *module)
{
    static char texts[4][PATH_MAX];
    static size_t next;
    char *text = texts[next++ % 4];
    (void)snprintf(text, PATH_MAX, "\"%.4000s\"", built(module));
    return text;
}

static void test_handlers(void **state)
{
    wb_handler_set set;
    wb_problems problems;
    (void)state;
    assert_int_equal(load_handlers(quoted("handlers/.libs/orders.so"), &set, &problems), WB_OK);
    assert_int_equal(set.count, 2);
    assert_string_equal(set.types[0], "Sales.CancelOrder");
    assert_string_equal(set.types[1], "Sales.PlaceOrder");
    assert_non_null(set.entries[0].batch);
    assert_null(set.entries[0].one);
    const wb_handler_entry *found = wb_handlers_find(&set, "Sales.PlaceOrder, more", 16);
    assert_non_null(found);
    assert_non_null(found->one);
    assert_null(wb_handlers_find(&set, "Sales.PlaceOrder", 15));
    assert_null(wb_handlers_find(&set, "Sales.PlaceOrder\0x", 18));
    assert_null(wb_handlers_find(&set, "", 0));
    wb_handlers_free(&set);
    wb_problems_free(&problems);
}

/* Rows are longer, or shorter, than ours; what is beyond is not read, what is missing is not there. */
static void test_handlers_built_with_other_headers(void **state)
{
    static const char *const modules[] = { "handlers/.libs/longer.so", "handlers/.libs/shorter.so" };
    wb_handler_set set;
    wb_problems problems;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(load_handlers(quoted(modules[i]), &set, &problems), WB_OK);
        assert_int_equal(set.count, 2);
        assert_string_equal(set.types[1], "Future.Second");
        assert_non_null(set.entries[1].one);
        assert_null(set.entries[1].batch);
        assert_int_equal(set.module_count, 1);
        assert_null(set.modules[0].open);
        wb_handlers_free(&set);
        wb_problems_free(&problems);
    }
}

static void test_handlers_from_before(void **state)
{
    char list[2 * PATH_MAX];
    wb_handler_set set;
    wb_problems problems;
    (void)state;
    (void)snprintf(list, sizeof list, "%s,\n%s", quoted("handlers/.libs/before.so"), quoted("handlers/.libs/cut.so"));
    assert_int_equal(load_handlers(list, &set, &problems), WB_FATAL);
    assert_problem(&problems, "before.so\" is refused: it was built with headers from before 1.0; rebuild the module");
    assert_problem(&problems, "cut.so\" is refused: its table has ");
    assert_error_count(&problems, 2);
    assert_int_equal(set.count, 0);
    assert_int_equal(set.module_count, 0);
    wb_handlers_free(&set);
    wb_problems_free(&problems);
}

static void test_handler_of_other_types(void **state)
{
    wb_handler_set set;
    wb_problems problems;
    (void)state;
    assert_int_equal(load_handlers(quoted("handlers/.libs/others.so"), &set, &problems), WB_OK);
    assert_int_equal(set.count, 2);
    assert_ptr_equal(set.other, &set.entries[0]);
    assert_null(wb_handlers_find(&set, "*", 1)); /* no message is of that type */
    assert_non_null(wb_handlers_find(&set, "Sales.PlaceOrder", 16));
    wb_handlers_free(&set);
    wb_problems_free(&problems);
    assert_int_equal(load_handlers(quoted("handlers/.libs/orders.so"), &set, &problems), WB_OK);
    assert_null(set.other);
    wb_handlers_free(&set);
    wb_problems_free(&problems);
    assert_int_equal(load_handlers(quoted("handlers/.libs/pattern.so"), &set, &problems), WB_FATAL);
    assert_problem(&problems, "pattern.so\": type \"Sales.*\" is no pattern: only \"*\" alone stands for other types");
    assert_error_count(&problems, 1);
    wb_handlers_free(&set);
    wb_problems_free(&problems);
}

static void test_refused_handlers(void **state)
{
    char list[5 * PATH_MAX], path[PATH_MAX];
    wb_handler_set set;
    wb_problems problems;
    (void)state;
    (void)snprintf(list, sizeof list, "%s,\n%s,\n", quoted("handlers/.libs/orders.so"),
                   quoted("handlers/.libs/again.so"));
    (void)snprintf(path, sizeof path, "%s/short.so", conf_directory);
    cut(built("handlers/.libs/orders.so"), path, 4097);
    (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s,\n%s,\n%s,\n\"absent.so\",\n\"%s\"",
                   quoted("handlers/.libs/major.so"), quoted("handlers/.libs/minor.so"),
                   quoted("plugins/transport/queue/.libs/queue.so"), path);
    assert_int_equal(load_handlers(list, &set, &problems), WB_FATAL);
    assert_int_equal(set.count, 4);
    assert_string_equal(set.types[3], "Sales.Some`1[[Sales.New]]");
    assert_error_count(&problems, 11);
    assert_problem(&problems, "endpoint \"orders\": type \"Sales.New\" is handled by \"");
    assert_problem(&problems, ":4: endpoint \"orders\": type \"Sales.PlaceOrder\" is handled by "
                              "\"");
    assert_problem(&problems, "/orders.so\" and again by \"");
    assert_problem(&problems, "/again.so\"; an endpoint has one handler for a type");
    assert_problem(&problems, "type \"Sales.Both\" must have exactly one function");
    assert_problem(&problems, "type \"Sales.Neither\" must have exactly one function");
    assert_problem(&problems, "has a handler whose type is not 1 to 255 bytes long, or names several");
    assert_problem(&problems, ":5: endpoint \"orders\": handler module \"");
    assert_problem(&problems, "major.so\" is refused: it was built for ABI 9, this host offers");
    assert_problem(&problems, "minor.so\" is refused: it needs ABI 1.3, this host offers ABI 1.0");
    assert_problem(&problems, "queue.so\" is refused: it does not export \"wb_handlers\"");
    assert_problem(&problems, "short.so\" is refused: the file is cut short: it has 4097 bytes, by its headers at least ");
    assert_problem(&problems, "there is no handler module \"absent.so\", neither \"");
    wb_handlers_free(&set);
    wb_problems_free(&problems);
}

/* Runs before any persistence is loaded; the sanitizers bring the library themselves. */
static void test_client_library(void **state)
{
    const char *module = quoted("handlers/.libs/client.so");
    wb_handler_set set;
    wb_problems problems;
    (void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_int_equal(load_handlers(module, &set, &problems), WB_FATAL);
    assert_problem(&problems, "client.so\" is refused: ");
    assert_problem(&problems, "undefined symbol: cbrt");
    wb_handlers_free(&set);
    wb_problems_free(&problems);
#endif
    expect_plugin(WB_PLUGIN_PERSISTENCE, "table");
    assert_int_equal(load_handlers(module, &set, &problems), WB_OK);
    assert_int_equal(set.count, 1);
    wb_handlers_free(&set);
    wb_problems_free(&problems);
}

/* ---- all together ---- */

static wb_setup *load_setup(const char *text, wb_problems *problems, int result)
{
    wb_setup *setup = NULL;
    memset(problems, 0, sizeof *problems);
    int got = wb_setup_load(conf_write("setup.conf", text), 0, &setup, problems);
    if (got != result)
        wb_problems_print(problems, stderr);
    assert_int_equal(got, result);
    return setup;
}

static void test_setup(void **state)
{
    char text[2 * PATH_MAX];
    wb_problems problems;
    (void)state;
    (void)snprintf(text, sizeof text,
                   "endpoints = ( { name = \"orders\"; concurrency = 3; batch_max = 50;\n"
                   "transaction_mode = \"transaction_scope\"; handlers = [%s];\n"
                   "transport = { plugin = \"file\"; path = \"/a\"; };\n"
                   "persistence = { plugin = \"file\"; path = \"/a\"; }; } );",
                   quoted("handlers/.libs/orders.so"));
    wb_setup *setup = load_setup(text, &problems, WB_OK);
    const wb_endpoint_setup *orders = wb_setup_endpoint(setup, "orders");
    assert_non_null(orders);
    assert_int_equal(orders->is_ready, 1);
    assert_int_equal(orders->plan.mode, WB_MODE_TRANSACTION_SCOPE);
    assert_int_equal(orders->plan.joined, 1);
    assert_int_equal(orders->plan.immediate_retries, 5);
    assert_string_equal(orders->info.name, "orders");
    assert_string_equal(orders->info.error_queue, "error");
    assert_int_equal(orders->info.concurrency, 3);
    assert_int_equal(orders->info.batch_max, 50);
    assert_int_equal(orders->info.body_max, 16 * 1024 * 1024);
    assert_int_equal(orders->info.type_count, 2);
    assert_string_equal(orders->info.types[1], "Sales.PlaceOrder");
    assert_string_equal(*(const char *const *)orders->persistence_config, "/a");
    assert_ptr_equal(orders->transport_ops, orders->transport->ops);
    assert_null(wb_setup_endpoint(setup, "billing"));
    wb_setup_free(setup);
    wb_problems_free(&problems);
}

/* A transport that receives from one queue is handed one, whatever the file says. */
static void test_queues_of_failures(void **state)
{
    wb_problems problems;
    (void)state;
    wb_setup *setup = load_setup("endpoints = ( { name = \"kept\"; outbox = { enabled = true; };\n"
                                 "failures = { from = [\"error\", \"legacy.error\"]; };\n"
                                 "transport = { plugin = \"file\"; path = \"/a\"; };\n"
                                 "persistence = { plugin = \"file\"; path = \"/b\"; }; } );",
                                 &problems, WB_FATAL);
    assert_non_null(setup);
    assert_problem(&problems, ":2: endpoint \"kept\": failures.from names 2 queues, and transport \"file\" (line 3) receives from "
                              "one; write another endpoint for each queue");
    assert_string_equal(setup->endpoints[0].info.name, "error");
    assert_int_equal(setup->endpoints[0].info.queue_count, 0);
    wb_setup_free(setup);
    wb_problems_free(&problems);
}

/* What is sent to the queue and never published needs no subscription. */
static void test_commands(void **state)
{
    static const char format[] =
        "endpoints = ( { name = \"orders\"; handlers = [%s];\n"
        "transport = { plugin = \"file\"; path = \"/a\"; };\n"
        "commands = [ \"Sales.PlaceOrder, Sales, Version=1.0\"%s ]; } );";
    char text[2 * PATH_MAX];
    wb_problems problems;
    (void)state;
    (void)snprintf(text, sizeof text, format, quoted("handlers/.libs/orders.so"), "");
    wb_setup *setup = load_setup(text, &problems, WB_OK);
    const wb_endpoint_setup *orders = wb_setup_endpoint(setup, "orders");
    assert_int_equal(orders->handlers.count, 2);
    assert_int_equal(orders->info.type_count, 1);
    assert_string_equal(orders->info.types[0], "Sales.CancelOrder");
    wb_setup_free(setup);
    wb_problems_free(&problems);

    (void)snprintf(text, sizeof text, format, quoted("handlers/.libs/orders.so"), ", \"Sales.Place\"");
    setup = load_setup(text, &problems, WB_FATAL);
    assert_problem(&problems, ":3: endpoint \"orders\": \"commands\" names \"Sales.Place\", for which there "
                              "is no handler");
    assert_error_count(&problems, 1);
    wb_setup_free(setup);
    wb_problems_free(&problems);
}

/* Nothing is subscribed to for a handler of all other types, nor is it a command. */
static void test_other_types_are_not_subscribed_to(void **state)
{
    static const char format[] = "endpoints = ( { name = \"orders\"; handlers = [%s];\n"
                                 "transport = { plugin = \"file\"; path = \"/a\"; };\n%s } );";
    char text[2 * PATH_MAX];
    wb_problems problems;
    (void)state;
    (void)snprintf(text, sizeof text, format, quoted("handlers/.libs/others.so"), "");
    wb_setup *setup = load_setup(text, &problems, WB_OK);
    const wb_endpoint_setup *orders = wb_setup_endpoint(setup, "orders");
    assert_int_equal(orders->info.type_count, 1);
    assert_string_equal(orders->info.types[0], "Sales.PlaceOrder");
    wb_setup_free(setup);
    wb_problems_free(&problems);
    (void)snprintf(text, sizeof text, format, quoted("handlers/.libs/others.so"), "commands = [ \"*\" ];");
    setup = load_setup(text, &problems, WB_FATAL);
    assert_problem(&problems, "\"commands\" names \"*\", for which there is no handler");
    wb_setup_free(setup);
    wb_problems_free(&problems);
}

static void test_setup_reports_everything(void **state)
{
    wb_problems problems;
    (void)state;
    wb_setup *setup =
        load_setup("endpoints = (\n"
                   "{ name = \"orders\"; batch_time = \"5x\"; handlers = [\"absent.so\"];\n"
                   "  transport = { plugin = \"queue\"; prot = 5671; heartbeat = 60; };\n"
                   "  persistence = { plugin = \"table\"; };\n"
                   "  transaction_mode = \"sends_atomic_with_receive\";\n"
                   "  outbox = { enabled = true; }; },\n"
                   "{ name = \"billing\"; transport = { plugin = \"badmajor\"; }; },\n"
                   "{ name = \"notes\"; send_only = true; concurrency = 2;\n"
                   "  on_endpoint_failure = \"exit\"; slow_handler = \"1s\"; handler_timeout = \"1min\"; audit = { queue = \"audit\"; };\n"
                   "  transport = { plugin = \"queue\"; }; } );",
                   &problems, WB_FATAL);
    assert_problem(&problems, ":2: endpoint \"orders\": option \"batch_time\"");
    assert_problem(&problems, ":2: endpoint \"orders\": there is no handler module");
    assert_problem(&problems, ":3: endpoint \"orders\": transport \"queue\": unknown option "
                              "\"prot\"; did you mean \"port\"?");
    assert_problem(&problems, ":3: endpoint \"orders\": transport \"queue\": option \"heartbeat\" "
                              "= 60 is not a duration");
    assert_problem(&problems, ":4: endpoint \"orders\": persistence \"table\": option \"path\" is "
                              "missing");
    assert_problem(&problems, ":5: endpoint \"orders\": transaction_mode = "
                              "\"sends_atomic_with_receive\" is not offered by transport "
                              "\"queue\"; use \"receive_only\"");
    assert_problem(&problems, ":5: endpoint \"orders\": transaction_mode = "
                              "\"sends_atomic_with_receive\" does not go with the outbox enabled "
                              "in line 6");
    assert_problem(&problems, ":7: endpoint \"billing\": plugin \"");
    assert_problem(&problems, ":8: endpoint \"notes\": \"concurrency\" is about an input queue");
    assert_problem(&problems, ":9: endpoint \"notes\": \"on_endpoint_failure\" is about an input queue");
    assert_problem(&problems, ":9: endpoint \"notes\": \"audit.queue\" is about an input queue");
    assert_problem(&problems, ":9: endpoint \"notes\": \"slow_handler\" is about an input queue");
    assert_problem(&problems, ":9: endpoint \"notes\": \"handler_timeout\" is about an input queue");
    assert_error_count(&problems, 13);
    for (size_t i = 0; i < setup->endpoint_count; i++)
        assert_int_equal(setup->endpoints[i].is_ready, 0);
    wb_setup_free(setup);
    wb_problems_free(&problems);
}

static int group_teardown(void **state)
{
    wb_config_free(handlers_config);
    return conf_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_client_library),
        cmocka_unit_test(test_trust),
        cmocka_unit_test(test_trust_of_owners),
        cmocka_unit_test(test_good_plugins),
        cmocka_unit_test(test_refused_plugins),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_plugin_path),
        cmocka_unit_test(test_more_rights_than_the_caller),
        cmocka_unit_test(test_one_file_for_both_kinds),
        cmocka_unit_test(test_files_cut_short),
        cmocka_unit_test(test_handlers),
        cmocka_unit_test(test_handlers_built_with_other_headers),
        cmocka_unit_test(test_handlers_from_before),
        cmocka_unit_test(test_handler_of_other_types),
        cmocka_unit_test(test_refused_handlers),
        cmocka_unit_test(test_setup),
        cmocka_unit_test(test_queues_of_failures),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_other_types_are_not_subscribed_to),
        cmocka_unit_test(test_setup_reports_everything),
    };
    return cmocka_run_group_tests_name("loader", tests, group_setup, group_teardown);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include "core/config/configuration.h"

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

/* The sample of the design, character for character. */
static const char sample[] =
    "endpoints = (\n"
    "  { name = \"orders\"; handlers = [\"orders.so\"]; concurrency = 4;\n"
    "    transport   = { plugin = \"amqp\";  host = \"localhost\"; password = "
    "\"env:AMQP_PASSWORD\"; };\n"
    "    persistence = { plugin = \"pgsql\"; conninfo = \"service=orders\"; };\n"
    "    outbox      = { enabled = true; retention = \"7d\"; };\n"
    "    recoverability = { immediate_retries = 5; delayed_retries = 3; delay_increment = "
    "\"10s\"; error_queue = \"error\"; }; },\n"
    "  { name = \"billing\"; handlers = [\"billing.so\"];\n"
    "    transport   = { plugin = \"kafka\"; brokers = \"k1:9092,k2:9092\"; };\n"
    "    persistence = { plugin = \"mysql\"; host = \"db1\"; }; outbox = { enabled = true; }; }\n"
    ");\n";

static wb_config *load(const char *text, wb_problems *problems)
{
    memset(problems, 0, sizeof *problems);
    return wb_config_load(conf_write("waybill.conf", text), problems);
}

static void done(wb_config *config, wb_problems *problems)
{
    wb_config_free(config);
    wb_problems_free(problems);
}

/* However a list is written, its elements stand where they do, and so does what follows. */
static void test_lines_of_elements(void **state)
{
    static const int lines[] = { 2, 3, 4, 8 };
    wb_problems problems;
    (void)state;
    wb_config *config = load("endpoints = ( { name = \"a\"; handlers = [\n\"a.so\",\n\"b.so\" /* b,\n*/ , \"c.so\"\n# ],\n// )\n\n,"
                             "\"d.so\"\n\n\n]; concurrency = 0;\ntransport = { plugin = \"sqlite\"; }; } );",
                             &problems);
    assert_int_equal(config->endpoints[0].handler_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(config->endpoints[0].handlers[i].at.line, lines[i]);
    assert_error_count(&problems, 1);
    assert_non_null(strstr(problems.items[0].text, ":11: "));
    assert_int_equal(config->endpoints[0].transport.at.line, 12);
    done(config, &problems);
}

static void test_sample(void **state)
{
    wb_problems problems;
    (void)state;
    wb_config *config = load(sample, &problems);
    assert_non_null(config);
    assert_error_count(&problems, 0);
    assert_int_equal(config->endpoint_count, 2);
    const wb_endpoint_config *orders = wb_config_endpoint(config, "orders");
    assert_non_null(orders);
    assert_int_equal(orders->concurrency, 4);
    assert_int_equal(orders->handler_count, 1);
    assert_string_equal(orders->handlers[0].path, "orders.so");
    assert_string_equal(orders->transport.plugin, "amqp");
    assert_string_equal(orders->persistence.plugin, "pgsql");
    assert_int_equal(orders->outbox.enabled, 1);
    assert_int_equal(orders->outbox.retention, 7 * 86400 * S);
    assert_int_equal(orders->recoverability.delayed_retries, 3);
    assert_int_equal(WB_CONFIG_ORIGIN(orders, recoverability.delayed_retries).line, 6);
    assert_int_equal(WB_CONFIG_ORIGIN(orders, outbox.enabled).line, 5);
    assert_string_equal(wb_config_endpoint(config, "billing")->transport.plugin, "kafka");
    assert_null(wb_config_endpoint(config, "shipping"));
    done(config, &problems);
}

static void test_defaults(void **state)
{
    wb_problems problems;
    (void)state;
    wb_config *config =
        load("endpoints = ( { name = \"a\";\n transport = { plugin = \"amqp\"; }; } );", &problems);
    assert_error_count(&problems, 0);
    const wb_endpoint_config *a = &config->endpoints[0];
    assert_true(a->concurrency >= 2);
    assert_int_equal(a->transaction_mode, WB_MODE_RECEIVE_ONLY);
    assert_int_equal(WB_CONFIG_ORIGIN(a, transaction_mode).is_set, 0);
    assert_int_equal(a->batch_max, 100);
    assert_int_equal(a->batch_time, 20 * MS);
    assert_int_equal(a->body_max, 16 * 1024 * 1024);
    assert_int_equal(a->shutdown_timeout, 30 * S);
    assert_int_equal(a->on_endpoint_failure, WB_ON_FAILURE_RESTART);
    assert_int_equal(a->start, WB_START_FAIL);
    assert_int_equal(a->handler_time_limit, 300 * S);
    assert_int_equal(a->slow_handler, 30 * S);
    assert_int_equal(a->handler_timeout, 0);
    assert_int_equal(a->send_only, 0);
    assert_null(a->persistence.plugin);
    assert_null(a->persistence.node);
    assert_int_equal(a->outbox.enabled, 0);
    assert_int_equal(a->outbox.retention, 7 * 86400 * S);
    assert_int_equal(a->outbox.cleanup_interval, 60 * S);
    assert_int_equal(a->outbox.sweep_after, 60 * S);
    assert_int_equal(a->recoverability.immediate_retries, 5);
    assert_int_equal(a->recoverability.delayed_retries, 3);
    assert_int_equal(WB_CONFIG_ORIGIN(a, recoverability.delayed_retries).is_set, 0);
    assert_int_equal(a->recoverability.delay_increment, 10 * S);
    assert_string_equal(a->recoverability.error_queue, "error");
    assert_null(a->audit.queue);
    assert_int_equal(config->log_level, WB_LOG_INFO);
    assert_int_equal(config->plugin_path_count, 0);
    done(config, &problems);
}

static void test_deduplication_store(void **state)
{
    static const char *const endpoints =
        "endpoints = (\n"
        "{ name = \"a\"; transport = { plugin = \"t\"; };\n"
        "  outbox = { enabled = true; deduplication = {\n"
        "    store = { plugin = \"p\"; file = \"f\"; }; }; }; },\n"
        "{ name = \"b\"; transport = { plugin = \"t\"; };\n"
        "  outbox = { enabled = true; deduplication = {\n"
        "    store = { file = \"f\"; }; }; }; } );\n";
    wb_problems problems = { 0 };
    (void)state;
    wb_config *config = wb_config_load(conf_write("store.conf", endpoints), &problems);
    assert_non_null(config);
    assert_string_equal(config->endpoints[0].outbox.store.plugin, "p");
    assert_int_equal(config->endpoints[0].outbox.store.at.line, 4);
    assert_true(config->endpoints[0].outbox.by_id);
    assert_problem(&problems, "store.conf:7: endpoint \"b\": group \"store\" names no plugin");
    assert_error_count(&problems, 1);
    wb_config_free(config);
    wb_problems_free(&problems);
}

static void test_deduplication(void **state)
{
    static const char *const endpoints = "endpoints = (\n"
        "{ name = \"a\"; transport = { plugin = \"t\"; }; },\n"
        "{ name = \"b\"; transport = { plugin = \"t\"; };\n"
        "  outbox = { enabled = true; deduplication = { by = [\"position\"]; }; }; },\n"
        "{ name = \"c\"; transport = { plugin = \"t\"; };\n"
        "  outbox = { enabled = true; deduplication = { by = [\"id\", \"position\"]; }; }; },\n"
        "{ name = \"d\"; transport = { plugin = \"t\"; };\n"
        "  outbox = { deduplication = { by = [\"name\"]; }; }; },\n"
        "{ name = \"e\"; transport = { plugin = \"t\"; };\n"
        "  outbox = { deduplication = { by = []; }; }; } );\n";
    wb_problems problems = { 0 };
    (void)state;
    wb_config *config = wb_config_load(conf_write("by.conf", endpoints), &problems);
    assert_non_null(config);
    const wb_endpoint_config *e = config->endpoints;
    assert_true(e[0].outbox.by_id && !e[0].outbox.by_position);
    assert_true(!e[1].outbox.by_id && e[1].outbox.by_position);
    assert_true(e[2].outbox.by_id && e[2].outbox.by_position);
    assert_problem(&problems, "by.conf:8: endpoint \"d\": option \"outbox.deduplication.by\" holds \"name\"; it may hold");
    assert_problem(&problems, "by.conf:10: endpoint \"e\": option \"outbox.deduplication.by\" is empty");
    assert_error_count(&problems, 2);
    wb_config_free(config);
    wb_problems_free(&problems);
}

static void test_on_endpoint_failure(void **state)
{
    wb_problems problems;
    (void)state;
    wb_config *config = load("endpoints = (\n"
                             "{ name = \"a\"; on_endpoint_failure = \"exit\"; transport = { plugin = \"t\"; }; },\n"
                             "{ name = \"b\"; on_endpoint_failure = \"restart\"; transport = { plugin = \"t\"; }; },\n"
                             "{ name = \"c\"; on_endpoint_failure = \"retry\"; transport = { plugin = \"t\"; }; } );",
                             &problems);
    assert_error_count(&problems, 1);
    assert_problem(&problems, ":4: endpoint \"c\": option \"on_endpoint_failure\" = \"retry\" is none of: "
                              "\"restart\", \"exit\"");
    assert_int_equal(config->endpoints[0].on_endpoint_failure, WB_ON_FAILURE_EXIT);
    assert_int_equal(config->endpoints[1].on_endpoint_failure, WB_ON_FAILURE_RESTART);
    done(config, &problems);
}

/* Who hears of a slow handler can still do something. */
static void test_handler_timeout(void **state)
{
    wb_problems problems;
    (void)state;
    wb_config *config = load("endpoints = (\n"
                             "{ name = \"a\"; handler_timeout = \"31s\"; transport = { plugin = \"t\"; }; },\n"
                             "{ name = \"b\"; handler_timeout = \"30s\"; transport = { plugin = \"t\"; }; },\n"
                             "{ name = \"c\"; handler_timeout = \"1s\"; slow_handler = 0; transport = { plugin = \"t\"; }; },\n"
                             "{ name = \"d\"; handler_timeout = \"1s\"; slow_handler = \"2s\"; transport = { plugin = \"t\"; }; } );",
                             &problems);
    assert_error_count(&problems, 2);
    assert_problem(&problems, ":3: endpoint \"b\": option \"handler_timeout\" = \"30s\" is not longer than slow_handler (30s)");
    assert_problem(&problems, ":5: endpoint \"d\": option \"handler_timeout\" = \"1s\" is not longer than slow_handler (2s)");
    assert_int_equal(config->endpoints[0].handler_timeout, 31 * S);
    done(config, &problems);
}

static void test_all_errors_in_one_run(void **state)
{
    wb_problems problems;
    (void)state;
    wb_config *config = load("log_levle = \"info\";\n"
                             "endpoints = (\n"
                             "  { name = \"orders\"; batch_time = \"5x\";\n"
                             "    batch_max = 0; concurency = 3;\n"
                             "    transport = { plugin = \"amqp\"; };\n"
                             "    outbox = { enabled = \"yes\"; };\n"
                             "    transaction_mode = \"recieve_only\"; },\n"
                             "  { persistence = { }; } );",
                             &problems);
    assert_non_null(config);
    assert_error_count(&problems, 9);
    assert_problem(&problems, "waybill.conf:1: unknown option \"log_levle\"; did you mean "
                              "\"log_level\"?");
    assert_problem(&problems, "waybill.conf:3: endpoint \"orders\": option \"batch_time\" = "
                              "\"5x\" is not a duration (use e.g. \"20ms\", \"10s\", \"7d\")");
    assert_problem(&problems, ":4: endpoint \"orders\": option \"batch_max\" = 0 is out of range "
                              "(1 to 10000)");
    assert_problem(&problems, ":4: endpoint \"orders\": unknown option \"concurency\"; did you "
                              "mean \"concurrency\"?");
    assert_problem(&problems, ":6: endpoint \"orders\": option \"enabled\" = \"yes\" is not a "
                              "boolean");
    assert_problem(&problems, ":7: endpoint \"orders\": option \"transaction_mode\" = "
                              "\"recieve_only\" is none of: ");
    assert_problem(&problems, "did you mean \"receive_only\"?");
    assert_problem(&problems, ":8: endpoint 2: option \"name\" is missing");
    assert_problem(&problems, ":8: endpoint 2: group \"transport\" is missing");
    assert_problem(&problems, ":8: endpoint 2: group \"persistence\" names no plugin");
    assert_int_equal(config->endpoints[0].has_errors, 1);
    done(config, &problems);
}

static void test_types(void **state)
{
    wb_problems problems;
    (void)state;
    wb_config *config = load("endpoints = (\n"
                             "  { name = \"orders\"; transport = { plugin = \"amqp\"; };\n"
                             "    types = ( { type = \"Sales.Placed, Sales, Version=1.0\"; bases = [ \"Sales.Base\", \"Sales.Any\" ]; },\n"
                             "              { type = \"Sales.Some`1[[Sales.Key, Sales]]\"; bases = [ \"Sales.Any\" ]; } ); } );",
                             &problems);
    assert_error_count(&problems, 0);
    const wb_endpoint_config *orders = wb_config_endpoint(config, "orders");
    assert_int_equal(orders->type_count, 2);
    assert_string_equal(wb_type_bases_find(orders->types, 2, "Sales.Placed")->list,
                        "Sales.Placed;Sales.Base;Sales.Any");
    assert_string_equal(wb_type_bases_find(orders->types, 2, "Sales.Some`1[[Sales.Key]], More")->list,
                        "Sales.Some`1[[Sales.Key]];Sales.Any");
    assert_null(wb_type_bases_find(orders->types, 2, "Sales.Base"));
    done(config, &problems);
}

static void test_wrong_types(void **state)
{
    wb_problems problems;
    (void)state;
    wb_config *config = load("endpoints = (\n"
                             "  { name = \"orders\"; transport = { plugin = \"amqp\"; };\n"
                             "    types = ( { type = \"A\"; },\n"
                             "              { type = \"B\"; bases = [ \"B\" ]; },\n"
                             "              { type = \"C\"; bases = [ \"D\", \"D, Lib\" ]; },\n"
                             "              { type = \"C\"; bases = [ \"E;F\" ]; base = 1; },\n"
                             "              7 ); },\n"
                             "  { name = \"billing\"; transport = { plugin = \"amqp\"; }; types = \"A\"; } );",
                             &problems);
    assert_error_count(&problems, 8);
    assert_problem(&problems, ":3: endpoint \"orders\": an element of \"types\" has no type or no bases");
    assert_problem(&problems, ":4: endpoint \"orders\": \"B\" in \"types\": this is the type itself");
    assert_problem(&problems, ":5: endpoint \"orders\": \"D, Lib\" in \"types\": this is the type itself, or a "
                              "base for the second time");
    assert_problem(&problems, ":6: endpoint \"orders\": unknown option \"base\" in \"types\"");
    assert_problem(&problems, ":6: endpoint \"orders\": \"C\" in \"types\": this type stands there twice");
    assert_problem(&problems, ":6: endpoint \"orders\": \"E;F\" in \"types\": this is not the name of one type");
    assert_problem(&problems, ":7: endpoint \"orders\": an element of \"types\" has no type or no bases");
    assert_problem(&problems, ":8: endpoint \"billing\": \"A\" in \"types\": this is not a list");
    done(config, &problems);
}

static void test_includes(void **state)
{
    wb_problems problems;
    (void)state;
    conf_write("more.inc", "\n\nname = \"orders\";\nbatch_max = 20000;\n");
    wb_config *config = load("# first\nendpoints = ( {\n  @include \"more.inc\" # inner\n"
                             "  concurrency = 5000;\n transport = { plugin = \"amqp\"; }; } );",
                             &problems);
    assert_error_count(&problems, 2);
    assert_problem(&problems, "more.inc:4: endpoint \"orders\": option \"batch_max\" = 20000");
    assert_problem(&problems, "waybill.conf:4: endpoint \"orders\": option \"concurrency\"");
    done(config, &problems);

    config = load("@include \"absent.inc\"\n", &problems);
    assert_null(config);
    assert_problem(&problems, "waybill.conf:1: cannot read \"");
    assert_problem(&problems, "absent.inc\": No such file");
    done(config, &problems);

    config = load("@include \"waybill.conf\"\n", &problems);
    assert_null(config);
    assert_problem(&problems, "includes are nested more than 10 deep");
    done(config, &problems);

    config = load("@include nothing\n", &problems);
    assert_null(config);
    assert_problem(&problems, ":1: @include must stand alone");
    done(config, &problems);
}

static void test_names(void **state)
{
    wb_problems problems;
    char text[2048], name[256];
    (void)state;
    memset(name, 'n', sizeof name);
    name[201] = '\0';
    (void)snprintf(text, sizeof text,
                   "endpoints = ( { name = \"a\"; transport = { plugin = \"t\"; }; },\n"
                   "{ name = \"a\"; transport = { plugin = \"t\"; }; },\n"
                   "{ name = \"a b\"; transport = { plugin = \"t\"; }; },\n"
                   "{ name = \"\"; transport = { plugin = \"t\"; }; },\n"
                   "{ name = \"error\"; transport = { plugin = \"t\"; }; },\n"
                   "{ name = \"%s\"; transport = { plugin = \"t\"; }; },\n"
                   "{ name = \"c\"; transport = { plugin = \"t\"; }; audit = { queue = \"c\"; }; },\n"
                   "{ name = \"d\"; transport = { plugin = \"t\"; }; audit = { queue = \"error\"; }; },\n"
                   "{ name = \"f\"; transport = { plugin = \"t\"; }; audit = { queue = \"a b\"; }; },\n"
                   "{ name = \"g\"; transport = { plugin = \"t\"; }; audit = { queue = \"queue:g\"; }; },\n"
                   "{ name = \"h\"; transport = { plugin = \"t\"; }; audit = { queue = \"h.odd\"; };\n"
                   "  recoverability = { types = ( { type = \"T\"; error_queue = \"h.odd\"; } ); }; } );",
                   name);
    wb_config *config = load(text, &problems);
    assert_error_count(&problems, 10);
    assert_problem(&problems, ":10: endpoint \"g\": option \"audit.queue\" = \"queue:g\" is the endpoint's own queue ");
    assert_problem(&problems, ":11: endpoint \"h\": option \"audit.queue\" = \"h.odd\" is the endpoint's own queue or "
                              "its error queue, or a type's");
    assert_problem(&problems, ":2: endpoint \"a\": this name was used in ");
    assert_problem(&problems, "waybill.conf:1 already");
    assert_problem(&problems, ":3: endpoint \"a b\": option \"name\" = \"a b\" is not a name");
    assert_problem(&problems, ":4: endpoint \"\": option \"name\" = \"\" is not a name");
    assert_problem(&problems, ":5: endpoint \"error\": option \"error_queue\" = \"error\" is the "
                              "endpoint's own queue");
    assert_problem(&problems, ":7: endpoint \"c\": option \"audit.queue\" = \"c\" is the endpoint's own queue "
                              "or its error queue");
    assert_problem(&problems, ":8: endpoint \"d\": option \"audit.queue\" = \"error\" is the endpoint's own "
                              "queue or its error queue");
    assert_problem(&problems, ":9: endpoint \"f\": option \"audit.queue\" = \"a b\" is not a name");
    assert_problem(&problems, ":6: endpoint \"nnn");
    done(config, &problems);
    assert_false(wb_config_is_name(name));
    name[200] = '\0';
    assert_true(wb_config_is_name(name));
    assert_false(wb_config_is_name("a b"));
    assert_false(wb_config_is_name(""));
}

/* Queues that are no endpoint's: of failed messages, a type's too, and of audit copies. */
static void test_users_of_queues(void **state)
{
    static const struct {
        const char *queue, *user;
    } rows[] = { { "error", "a" }, { "queue:error", "a" }, { "b.error", "b" }, { "queue:b.error", "b" }, { "b.odd", "b" },
                 { "queue:b.odd", "b" }, { "b.audit", "b" }, { "queue:b.audit", "b" }, { "a", NULL }, { "b", NULL }, { "other", NULL } };
    wb_problems problems;
    (void)state;
    wb_config *config = load("endpoints = ( { name = \"a\"; transport = { plugin = \"t\"; }; },\n"
                             "{ name = \"b\"; transport = { plugin = \"t\"; }; audit = { queue = \"b.audit\"; };\n"
                             "  recoverability = { error_queue = \"queue:b.error\"; types = ( { type = \"T\"; "
                             "error_queue = \"b.odd\"; } ); }; } );", &problems);
    assert_error_count(&problems, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const wb_endpoint_config *user = wb_config_user_of(config, rows[i].queue);
        assert_int_equal(!user, !rows[i].user);
        if (user)
            assert_string_equal(user->name, rows[i].user);
    }
    const wb_endpoint_config *b = wb_config_endpoint(config, "b");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int is_own = strcmp(rows[i].queue, "b") == 0;
        assert_int_equal(wb_config_uses(b, rows[i].queue), is_own || (rows[i].user && strcmp(rows[i].user, "b") == 0));
    }
    done(config, &problems);
}

/* RabbitMQ has two addresses for a queue; whichever is written where, it is one. */
static void test_addresses_of_a_queue(void **state)
{
    static const char *const addresses[] = { "\"q\"", "\"queue:q\"" };
    static const struct {
        const char *before, *between, *behind;
    } rows[] = {
        { "name = \"a\"; recoverability = { error_queue = ", "; }; audit = { queue = ", "; };" },
        { "name = \"a\"; recoverability = { types = ( { type = \"T\"; error_queue = ", "; } ); }; audit = { queue = ", "; };" },
        { "name = ", "; audit = { queue = ", "; };" },
        { "name = ", "; recoverability = { error_queue = ", "; };" },
        { "name = ", "; recoverability = { types = ( { type = \"T\"; error_queue = ", "; } ); };" },
        { "name = \"a\"; failures = { from = [ ", " ]; }; audit = { queue = ", "; };" },
        { "name = \"a\"; failures = { from = [ ", " ]; }; recoverability = { error_queue = ", "; };" },
        { "name = \"a\"; failures = { from = [ \"error\", ", " ]; }; audit = { queue = ", "; };" },
        { "name = \"a\"; failures = { from = [ \"error\", ", " ]; }; recoverability = { error_queue = ", "; };" },
        { "name = \"a\"; failures = { from = [ \"error\", \"other\", ", " ]; }; recoverability = { types = ( { type = \"T\"; "
          "error_queue = ", "; } ); };" },
    };
    (void)state;
    for (size_t i = 0; i < 4 * sizeof rows / sizeof rows[0]; i++) {
        char text[400];
        wb_problems problems;
        (void)snprintf(text, sizeof text, "endpoints = ( { transport = { plugin = \"t\"; }; %s%s%s%s%s } );", rows[i / 4].before,
                       addresses[i % 2], rows[i / 4].between, addresses[i / 2 % 2], rows[i / 4].behind);
        wb_config *config = load(text, &problems);
        if (problems.error_count != 1)
            fail_msg("%s", text);
        assert_problem(&problems, " is the endpoint's own queue");
        done(config, &problems);
    }
}

/* Those whose failed messages an endpoint keeps: the first stands for its own, the others beside it. */
static void test_queues_of_failures(void **state)
{
    static const char *const twice[] = { "\"q\", \"r\", \"q\"", "\"q\", \"queue:q\"", "\"queue:q\", \"r\", \"q\"" };
    static const char format[] = "endpoints = ( { name = \"kept\"; transport = { plugin = \"t\"; };\nfailures = { from = [%s]; }; } );";
    const char *const *further;
    char text[1024], names[512] = "\"q0\"";
    wb_problems problems;
    (void)state;
    (void)snprintf(text, sizeof text, format, "\"error\"");
    wb_config *config = load(text, &problems);
    assert_error_count(&problems, 0);
    assert_int_equal(wb_config_further_queues(config->endpoints, &further), 0);
    assert_null(further);
    done(config, &problems);
    for (int i = 1; i <= 16; i++) {
        const size_t used = strlen(names);
        (void)snprintf(text, sizeof text, format, names);
        config = load(text, &problems);
        assert_error_count(&problems, 0);
        assert_string_equal(wb_config_queue(config->endpoints), "q0");
        assert_int_equal(wb_config_further_queues(config->endpoints, &further), i - 1);
        if (i > 1)
            assert_string_equal(further[0], "q1");
        assert_int_equal(wb_config_uses(config->endpoints, "queue:q1"), i > 1);
        assert_true(wb_config_uses(config->endpoints, "q0") && !wb_config_uses(config->endpoints, "q16"));
        assert_null(wb_config_user_of(config, "q0"));
        done(config, &problems);
        (void)snprintf(names + used, sizeof names - used, ", \"q%d\"", i);
    }
    (void)snprintf(text, sizeof text, format, names);
    config = load(text, &problems);
    assert_error_count(&problems, 1);
    assert_problem(&problems, ":2: endpoint \"kept\": option \"failures.from\" names 17 queues: an endpoint keeps the failures of 1 "
                              "to 16 error queues; write another endpoint for the rest");
    done(config, &problems);
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
        (void)snprintf(text, sizeof text, format, twice[i]);
        config = load(text, &problems);
        assert_error_count(&problems, 1);
        assert_problem(&problems, ":2: endpoint \"kept\": option \"failures.from\" names queue \"");
        done(config, &problems);
    }
    (void)snprintf(text, sizeof text, format, "\"q\", \"a b\"");
    config = load(text, &problems);
    assert_error_count(&problems, 1);
    assert_problem(&problems, "option \"failures.from\" = \"a b\" is not a name");
    done(config, &problems);
}

static void expect_unreadable(const char *text, const char *problem)
{
    wb_problems problems;
    wb_config *config = load(text, &problems);
    assert_null(config);
    assert_error_count(&problems, 1);
    assert_problem(&problems, problem);
    done(config, &problems);
}

static void test_syntax(void **state)
{
    (void)state;
    expect_unreadable("endpoints = (\n\n{ name = ;\n} );", ":3: syntax error; look here");
    expect_unreadable("endpoints = (\n\n{ outbox = yes; } );", "on and yes are written true");
    expect_unreadable("a = 1;\nb = 2;\na = 3;\n", ":3: duplicate setting name");
    expect_unreadable("a = \"x\ny", ":1: a string that starts here is not closed");
    expect_unreadable("b=1;/* x\ny", ":1: a comment that starts here is not closed");
    expect_unreadable("a = 1234567890123456789;", ":1: a number of 19 digits is too large");
    expect_unreadable("a = ((((((((((((((((( 1 )))))))))))))))));", "more than 16 deep");
}

static void test_limits_of_files(void **state)
{
    wb_problems problems = { 0 };
    (void)state;
    char *large = malloc(2000000);
    memset(large, ' ', 2000000);
    const char *path = conf_write_bytes("large.conf", large, 2000000);
    assert_null(wb_config_load(path, &problems));
    assert_problem(&problems, "larger than 1024 KiB");
    assert_null(wb_config_load(conf_write_bytes("nul.conf", "a = 1;\0", 7), &problems));
    assert_problem(&problems, "holds a NUL byte");
    assert_null(wb_config_load(conf_directory, &problems));
    assert_problem(&problems, "is not a regular file");
    free(large);
    wb_problems_free(&problems);
}

static void expect_distrust(const char *path, const char *first, const char *then)
{
    wb_problems problems = { 0 };
    assert_null(wb_config_load(path, &problems));
    assert_int_equal(problems.count, 1);
    assert_problem(&problems, first);
    assert_problem(&problems, then);
    wb_problems_free(&problems);
}

static void expect_trust(const char *path)
{
    wb_problems problems = { 0 };
    wb_config *config = wb_config_load(path, &problems);
    assert_non_null(config);
    wb_config_free(config);
    wb_problems_free(&problems);
}

/* The file itself, and what it includes. */
static void test_files_of_others(void **state)
{
    static const mode_t bad[] = { 0666, 0602, 0620, 0664 };
    char included[512], path[512];
    (void)state;
    (void)snprintf(included, sizeof included, "%s", conf_write("others.inc", sample));
    (void)snprintf(path, sizeof path, "%s", conf_write("others.conf", "\n@include \"others.inc\"\n"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char mode[16];
        (void)snprintf(mode, sizeof mode, "mode %04o ", (unsigned)bad[i]);
        assert_int_equal(chmod(path, bad[i]), 0);
        expect_distrust(path, mode, "lets others write it; use chmod go-w");
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(chmod(included, bad[i]), 0);
        expect_distrust(path, "others.conf:2: cannot read \"", "others.inc\": it names code to load, and its mode");
        assert_int_equal(chmod(included, 0640), 0);
    }
    expect_trust(path);
    if (geteuid() != 0)
        return; /* only root can give a file away */
    assert_int_equal(chown(included, 65534, 65534), 0);
    expect_distrust(path, "others.inc\": it names code to load, and belongs to uid 65534", "it must belong to root; use chown");
    assert_int_equal(chown(included, 0, 65534), 0);
    assert_int_equal(chmod(included, 0644), 0);
    expect_trust(path);
    /* as its owner sees it, and as another does */
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(chown(conf_directory, 65534, 65534), 0);
    assert_int_equal(seteuid(65534), 0);
    expect_trust(path);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(path, 1, 1), 0);
    assert_int_equal(seteuid(65534), 0);
    expect_distrust(path, "belongs to uid 1:", "it must belong to root or to the user that runs this; use chown");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(conf_directory, 0, 0), 0);
}

static void test_nothing_in_it(void **state)
{
    wb_problems problems;
    (void)state;
    wb_config *config = load("", &problems);
    assert_error_count(&problems, 1);
    assert_problem(&problems, "there are no endpoints");
    done(config, &problems);
    config = load("endpoints = ();", &problems);
    assert_problem(&problems, ":1: there are no endpoints");
    done(config, &problems);
    config = load("endpoints = ( 1, \"x\" );", &problems);
    assert_problem(&problems, "element 2 of \"endpoints\" is not a group");
    done(config, &problems);
}

static void test_large_integers_are_not_cut(void **state)
{
    wb_problems problems;
    (void)state;
    /* 4294967301 is 5 in 32 bits */
    wb_config *config = load("endpoints = ( { name = \"a\"; concurrency = 4294967301;\n"
                             "transport = { plugin = \"t\"; }; } );",
                             &problems);
    assert_error_count(&problems, 1);
    assert_problem(&problems, "option \"concurrency\" = 4294967301 is out of range (1 to 1024)");
    done(config, &problems);
}

static void test_plugin_path_and_level(void **state)
{
    wb_problems problems;
    char expected[256];
    (void)state;
    wb_config *config = load("plugin_path = [\"more\", \"/opt/more\"]; log_level = \"debug\";\n"
                             "endpoints = ( { name = \"a\"; transport = { plugin = \"t\"; }; } );",
                             &problems);
    assert_error_count(&problems, 0);
    assert_int_equal(config->plugin_path_count, 2);
    (void)snprintf(expected, sizeof expected, "%s/more", conf_directory);
    assert_string_equal(config->plugin_path[0], expected);
    assert_string_equal(config->plugin_path[1], "/opt/more");
    assert_int_equal(config->log_level, WB_LOG_DEBUG);
    done(config, &problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_lines_of_elements),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_deduplication),
        cmocka_unit_test(test_deduplication_store),
        cmocka_unit_test(test_on_endpoint_failure),
        cmocka_unit_test(test_handler_timeout),
        cmocka_unit_test(test_all_errors_in_one_run),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_includes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_users_of_queues),
        cmocka_unit_test(test_addresses_of_a_queue),
        cmocka_unit_test(test_queues_of_failures),
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_limits_of_files),
        cmocka_unit_test(test_files_of_others),
        cmocka_unit_test(test_nothing_in_it),
        cmocka_unit_test(test_large_integers_are_not_cut),
        cmocka_unit_test(test_plugin_path_and_level),
    };
    return cmocka_run_group_tests_name("config", tests, conf_setup, conf_teardown);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport and the broker's delivery limits: what install declares, what of an
 * existing queue is accepted, and what is found out about it, with the management
 * interface and without.
 */
#include "config.h"

#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/integration/amqp-fixture.h"

#define NONE INT_MIN

static void acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

/* ---- queues of others ------------------------------------------------------------ */

static void declare(const char *queue, int limit, int length)
{
    amqp_table_entry_t arguments[] = {
        { amqp_cstring_bytes("x-queue-type"),
          { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("quorum") } },
        { amqp_cstring_bytes("x-max-length"),
          { .kind = AMQP_FIELD_KIND_I32, .value.i32 = length } },
        { amqp_cstring_bytes("x-delivery-limit"),
          { .kind = AMQP_FIELD_KIND_I32, .value.i32 = limit } },
    };
    amqp_table_t table = { 1, arguments };
    if (length)
        table.num_entries++;
    else
        arguments[1] = arguments[2];
    if (limit != NONE)
        table.num_entries++;
    else if (!length)
        table.num_entries = 1;
    amqp_connection_state_t client = client_open();
    assert_non_null(
        amqp_queue_declare(client, 1, amqp_cstring_bytes(queue), 0, 1, 0, 0, table));
    client_close(client);
}

static amqp_field_value_t value_of(char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (strcmp(text, "true") == 0)
        return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 };
    if (*end == '\0')
        return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_I32, .value.i32 = (int32_t)number };
    return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_UTF8,
                                 .value.bytes = amqp_cstring_bytes(text) };
}

/* `words` are "name=value name=value"; without type none is named. */
static void declare_by(amqp_connection_state_t client, const char *queue, const char *type, const char *words)
{
    enum { MOST = 10 };
    amqp_table_entry_t arguments[MOST];
    char text[500];
    char *rest = NULL;
    int count = 0;
    (void)snprintf(text, sizeof text, "%s%s %s", type ? "x-queue-type=" : "", type ? type : "",
                   words);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        assert_true(value && count < MOST);
        *value++ = '\0';
        arguments[count++] = (amqp_table_entry_t){ amqp_cstring_bytes(word), value_of(value) };
    }
    if (!amqp_queue_declare(client, 1, amqp_cstring_bytes(queue), 0, 1, 0, 0,
                            (amqp_table_t){ count, arguments }))
        fail_msg("the broker does not take %s", words);
}

static void declare_with(const char *queue, const char *type, const char *words)
{
    amqp_connection_state_t client = client_open();
    declare_by(client, queue, type, words);
    client_close(client);
}

/* In one go: who consumes from it is not told. */
static void replace(const char *queue, const char *words)
{
    amqp_connection_state_t client = client_open();
    assert_non_null(amqp_queue_delete(client, 1, amqp_cstring_bytes(queue), 0, 0));
    declare_by(client, queue, "quorum", words);
    client_close(client);
}

/* Take one message and reject it for good. */
static void client_reject(const char *queue)
{
    amqp_connection_state_t client = client_open();
    assert_int_equal(amqp_basic_get(client, 1, amqp_cstring_bytes(queue), 0).reply_type,
                     AMQP_RESPONSE_NORMAL);
    amqp_message_t message;
    assert_int_equal(amqp_read_message(client, 1, &message, 0).reply_type, AMQP_RESPONSE_NORMAL);
    amqp_destroy_message(&message);
    assert_int_equal(amqp_basic_reject(client, 1, 1, 0), 0);
    client_close(client);
}

/* Whether the running broker is 4.0 or later. */
static int is_4(void)
{
    amqp_connection_state_t client = client_open();
    const amqp_table_t *properties = amqp_get_server_properties(client);
    int is = 0;
    for (int i = 0; i < properties->num_entries; i++) {
        if (properties->entries[i].key.len == 7 &&
            memcmp(properties->entries[i].key.bytes, "version", 7) == 0)
            is = ((const char *)properties->entries[i].value.value.bytes.bytes)[0] >= '4';
    }
    client_close(client);
    return is;
}

static uint32_t limit_of(fixture *f)
{
    wb_transport_limits limits = { .struct_size = sizeof limits };
    assert_true(WB_HAS(f->ops, wb_transport_ops, limits));
    if (f->ops->limits(f->transport, &limits, &f->error) != WB_OK)
        fail_msg("limits: %s", f->error.text);
    return limits.delivery_limit;
}

/* The host warns: from the plugin comes why, as information. */
static void check_unknown(fixture *f, const char *why)
{
    int warnings = fixture_warnings();
    assert_int_equal(limit_of(f), WB_LIMIT_UNKNOWN);
    assert_int_equal(fixture_warnings(), warnings);
    if (!strstr(fixture_last_line(), "why the delivery limit") || !strstr(fixture_last_line(), why))
        fail_msg("not \"%s\": %s", why, fixture_last_line());
}

static void prepare(fixture *f)
{
    fixture_prepare(f);
    f->config.user = "guest";
}

static void install(fixture *f)
{
    if (f->ops->install(f->transport, &f->error) != WB_OK)
        fail_msg("install: %s", f->error.text);
    if (f->ops->verify(f->transport, &f->error) != WB_OK)
        fail_msg("verify: %s", f->error.text);
}

static void refuse_queue(fixture *f, const char *words)
{
    assert_int_equal(f->ops->install(f->transport, &f->error), WB_FATAL);
    if (!strstr(f->error.text, words))
        fail_msg("install, not \"%s\": %s", words, f->error.text);
}

/* ---- without the management interface -------------------------------------------- */

static void test_new_queue(void **state)
{
    enum { TIMES = 30 };
    fixture f;
    const wb_incoming *message;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    install(&f);
    assert_int_equal(limit_of(&f), 0);
    fixture_open(&f, 1);
    fixture_fill(&f, 1);
    for (uint32_t i = 0; i < TIMES; i++) {
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->delivery_count, i);
        assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
    }
    fixture_receive(&f, &message, 1);
    acknowledge(&f, &message, 1);
    fixture_end(&f);
}

/* Whoever made the error queue: endpoints of .NET declare it without a limit, and do not start when the
 * broker finds one (4.x, where ours is without by an argument). */
static void test_error_queue(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    install(&f);
    declare(f.error_queue, NONE, 0);
    install(&f);
    fixture_end(&f);
}

/* One that is there is taken as it is, and its limit is what the broker does. */
static void test_existing_queue(void **state)
{
    enum { LIMIT = 3 };
    fixture f;
    const wb_incoming *message;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    declare(f.queue, LIMIT, 0);
    declare(f.error_queue, 7, 0);
    install(&f);
    install(&f);
    assert_int_equal(limit_of(&f), LIMIT);
    fixture_open(&f, 1);
    fixture_fill(&f, 1);
    for (uint32_t i = 0; i <= LIMIT; i++) {
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->delivery_count, i);
        assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
    }
    fixture_receive_none(&f);
    fixture_end(&f);
}

static void test_silent_queue(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    declare(f.queue, NONE, 0);
    install(&f);
    assert_int_equal(limit_of(&f), is_4() ? 20 : 0);
    fixture_end(&f);
}

/* Arguments that one can live with, and those that break a promise, beside any limit. */
static void test_other_arguments(void **state)
{
    static const struct {
        const char *arguments; /* name=value, text or number */
        const char *own;       /* what is said of an input queue; NULL: nothing */
        const char *error;     /* of an error queue */
    } cases[] = {
        { "x-max-length=1000", "x-max-length = 1000", "x-max-length = 1000" },
        { "x-max-length=1000 x-overflow=drop-head", "x-max-length", "x-max-length" },
        { "x-max-length=1000 x-overflow=reject-publish", NULL, NULL },
        { "x-max-length-bytes=100000", "x-max-length-bytes", "x-max-length-bytes" },
        { "x-dead-letter-exchange=elsewhere x-dead-letter-routing-key=it's.of.type", NULL, NULL },
        { "x-single-active-consumer=true x-quorum-initial-group-size=1", NULL, NULL },
        { "x-expires=3600000 x-overflow=reject-publish", "x-expires", "x-expires" },
        { "x-dead-letter-exchange=a x-dead-letter-strategy=at-least-once "
          "x-overflow=reject-publish x-max-length=5 x-delivery-limit=7",
          NULL, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int error_queue = 0; error_queue < 2; error_queue++) {
            const char *expected = error_queue ? cases[i].error : cases[i].own;
            fixture f;
            prepare(&f);
            fixture_create(&f);
            declare_with(error_queue ? f.error_queue : f.queue, "quorum", cases[i].arguments);
            if (expected) {
                refuse_queue(&f, expected);
            } else {
                install(&f);
                if (!error_queue && strstr(cases[i].arguments, "limit=7"))
                    assert_int_equal(limit_of(&f), 7);
            }
            fixture_end(&f);
        }
    }
}

/* How long failures are kept is the operator's affair, how long messages wait is not. */
static void test_other_arguments_classic(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    f.config.queue_type = WB_AMQP_QUEUE_CLASSIC;
    fixture_create(&f);
    declare_with(f.queue, "classic", "x-max-priority=5");
    declare_with(f.error_queue, NULL, "x-message-ttl=86400000");
    install(&f);
    client_delete_queue(f.queue);
    declare_with(f.queue, NULL, "x-max-priority=5 x-message-ttl=1000");
    refuse_queue(&f, "x-message-ttl = 1000");
    fixture_end(&f);
}

/* What cannot be handled has a place, if that place is there. */
static void test_dead_letters(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    prepare(&f);
    f.config.dead_letter_exchange = "nowhere";
    fixture_create(&f);
    refuse_queue(&f, "\"nowhere\" does not exist");
    client_delete_queue(f.queue);
    f.config.dead_letter_exchange = f.error_queue;
    install(&f);
    install(&f);
    f.endpoint.error_queue = NULL; /* it has gone since, and is nothing else's */
    client_delete_exchange(f.error_queue);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_FATAL);
    assert_int_equal(f.error.cause, WB_CAUSE_MISSING);
    f.endpoint.error_queue = f.error_queue;
    install(&f);
    f.config.dead_letter_exchange = "other";
    refuse_queue(&f, "x-dead-letter-exchange");
    f.config.dead_letter_exchange = NULL;
    install(&f);
    fixture_open(&f, 1);
    fixture_fill(&f, 1);
    fixture_close(&f);
    client_reject(f.queue);
    f.endpoint.name = f.error_queue;
    fixture_open(&f, 1);
    fixture_receive(&f, &message, 1);
    assert_string_equal(message->id, "m-0");
    acknowledge(&f, &message, 1);
    fixture_end(&f);
}

static void test_classic_queue(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    f.config.queue_type = WB_AMQP_QUEUE_CLASSIC;
    fixture_create(&f);
    install(&f);
    assert_int_equal(limit_of(&f), 0);
    fixture_end(&f);
}

/* The broker's words are cut off, and the limit stands at their end. */
static void test_long_name(void **state)
{
    fixture f;
    char name[200];
    (void)state;
    prepare(&f);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name, f.queue, strlen(f.queue));
    f.endpoint.name = name;
    fixture_create(&f);
    declare(name, 3, 0);
    install(&f);
    check_unknown(&f, "cut off");
    fixture_end(&f);
}

/* Nobody listens, no queue, no permission: unknown, and nothing is made. */
static void test_unknown(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    check_unknown(&f, "no queue");
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_FATAL);
    assert_int_equal(f.error.cause, WB_CAUSE_MISSING);
    install(&f);
    fixture_broker("ctl", "add_user reader secret");
    fixture_broker("ctl", "set_permissions reader '^$' '.*' '.*'");
    f.config.user = "reader";
    f.config.password = "secret";
    check_unknown(&f, "ACCESS_REFUSED");
    f.config.port = 1;
    check_unknown(&f, "port 1");
    fixture_end(&f);
}

/* ---- with it --------------------------------------------------------------------- */

#ifdef HAVE_LIBCURL
static void set_policy(const char *kind, const char *name, const char *queue, int limit)
{
    char command[300];
    (void)snprintf(command, sizeof command,
                   "%s --apply-to queues %s '^%s$' '{\"delivery-limit\":%d}'", kind, name, queue,
                   limit);
    fixture_broker("ctl", command);
}

static void manage(fixture *f, const char *login)
{
    static char url[200];
    (void)snprintf(url, sizeof url, "http://%s127.0.0.1:%d/", login,
                   fixture_port("MANAGEMENT_PORT"));
    f->config.management = url;
}

/* Argument, policy, operator policy: the lowest one counts, as the broker does it. */
static void test_management(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    prepare(&f);
    manage(&f, "");
    fixture_create(&f);
    set_policy("set_policy", "limits", f.queue, 7);
    declare(f.queue, 9, 0);
    install(&f);
    int warnings = fixture_warnings();
    assert_int_equal(limit_of(&f), 7);
    client_delete_queue(f.queue);
    set_policy("set_operator_policy", "limits", f.queue, 2);
    declare(f.queue, 9, 0);
    install(&f);
    assert_int_equal(limit_of(&f), 2);
    assert_int_equal(fixture_warnings(), warnings);
    fixture_open(&f, 1);
    fixture_fill(&f, 1);
    for (uint32_t i = 0; i <= 2; i++) {
        fixture_receive(&f, &message, 1);
        assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
    }
    fixture_receive_none(&f);
    fixture_close(&f);
    client_delete_queue(f.queue);
    fixture_broker("ctl", "clear_policy limits");
    fixture_broker("ctl", "clear_operator_policy limits");
    install(&f);
    assert_int_equal(limit_of(&f), 0);
    fixture_end(&f);
}

/* Policies break promises as arguments do, of either queue. */
static void test_management_promises(void **state)
{
    char command[400];
    fixture f;
    (void)state;
    prepare(&f);
    manage(&f, "");
    fixture_create(&f);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(command, sizeof command, "set_policy short --apply-to queues '^%s$' '%s'",
                       i == 1 ? f.error_queue : f.queue,
                       i == 2 ? "{\"max-length\":5,\"overflow\":\"reject-publish\"}"
                              : "{\"max-length\":5}");
        fixture_broker("ctl", command);
        assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
        int result = f.ops->verify(f.transport, &f.error);
        assert_int_equal(result, i == 2 ? WB_OK : WB_FATAL);
        if (i != 2 && !strstr(f.error.text, "x-max-length = 5"))
            fail_msg("verify: %s", f.error.text);
        client_delete_queue(f.queue);
        client_delete_queue(f.error_queue);
    }
    fixture_broker("ctl", "clear_policy short");
    f.ops->destroy(f.transport);
}

/* ---- what would bite ------------------------------------------------------------- */

typedef struct {
    int count;
    char names[200], text[500], remedy[500]; /* all names; the rest of the last */
} found;

static void note_finding(void *argument, const wb_finding *finding)
{
    found *all = argument;
    all->count++;
    (void)strncat(all->names, finding->name, sizeof all->names - strlen(all->names) - 2);
    (void)strcat(all->names, " ");
    (void)snprintf(all->text, sizeof all->text, "%s", finding->text);
    (void)snprintf(all->remedy, sizeof all->remedy, "%s", finding->remedy ? finding->remedy : "");
}

static found examine(fixture *f)
{
    found all = { 0 };
    const wb_examination asked = { .struct_size = sizeof asked, .found = note_finding, .argument = &all };
    if (f->ops->examine(f->transport, &asked, &f->error) != WB_OK)
        fail_msg("examine: %s", f->error.text);
    return all;
}

static void make_anew(fixture *f)
{
    client_delete_queue(f->queue);
    client_delete_queue(f->error_queue);
    install(f);
}

/* As somebody would who reads it. */
static void apply(char *remedy)
{
    static const char program[] = "rabbitmqctl ";
    char *end = strstr(remedy, ", or ");
    assert_non_null(end);
    assert_memory_equal(remedy, program, sizeof program - 1);
    *end = '\0';
    fixture_broker("rabbitmqctl", remedy + sizeof program - 1);
}

static void test_findings(void **state)
{
    static const struct {
        int is_own;
        const char *definition, *name, *text;
    } policies[] = {
        { 1, "{\"max-length\":5,\"overflow\":\"reject-publish\"}", "queue-length ", "x-max-length = 5" },
        { 0, "{\"max-length-bytes\":99,\"overflow\":\"reject-publish\"}", "queue-length ", "x-max-length-bytes = 99" },
        { 0, "{\"message-ttl\":3600000}", "failed-messages-expire ", "x-message-ttl = 3600000" },
    };
    char command[400];
    fixture f;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    install(&f);
    found all = examine(&f);
    assert_string_equal(all.names, "policies-unknown ");
    assert_non_null(strstr(all.remedy, "management = "));
    manage(&f, "");
    assert_int_equal(examine(&f).count, 0);
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        (void)snprintf(command, sizeof command, "set_policy biting --apply-to queues '^%s$' '%s'",
                       policies[i].is_own ? f.queue : f.error_queue, policies[i].definition);
        fixture_broker("ctl", command);
        make_anew(&f);
        all = examine(&f);
        assert_string_equal(all.names, policies[i].name);
        if (!strstr(all.text, policies[i].text) || !strstr(all.text, policies[i].is_own ? f.queue : f.error_queue))
            fail_msg("%s", all.text);
        apply(all.remedy);
        make_anew(&f);
        assert_int_equal(examine(&f).count, 0);
    }
    client_delete_queue(f.queue);
    declare_with(f.queue, "quorum", "x-max-length=7 x-overflow=reject-publish");
    all = examine(&f);
    assert_string_equal(all.names, "queue-length ");
    assert_non_null(strstr(all.remedy, "delete the queue"));
    make_anew(&f);
    assert_int_equal(examine(&f).count, 0);
    f.ops->destroy(f.transport);
}

/* The URL's login is used, and shown nowhere; without the tag it is not enough, and what
 * the broker itself tells is used. */
static void test_management_login(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    manage(&f, "watcher:hush%2Fhush@");
    fixture_create(&f);
    declare(f.queue, 5, 0);
    install(&f);
    fixture_broker("ctl", "add_user watcher hush/hush");
    fixture_broker("ctl", "set_permissions watcher '^$' '^$' '.*'");
    int warnings = fixture_warnings();
    assert_int_equal(limit_of(&f), 5);
    assert_int_equal(fixture_warnings(), warnings + 1);
    assert_null(strstr(fixture_last_line(), "hush"));
    fixture_broker("ctl", "set_user_tags watcher monitoring");
    assert_int_equal(limit_of(&f), 5);
    assert_int_equal(fixture_warnings(), warnings + 1);
    f.config.management = "http://127.0.0.1:1";
    assert_int_equal(limit_of(&f), 5);
    assert_int_equal(fixture_warnings(), warnings + 2);
    fixture_end(&f);
}

static void refuse(const char *url, const char *text)
{
    fixture f;
    prepare(&f);
    f.config.management = url;
    assert_int_equal(
        f.ops->create(&f.host.host, &f.endpoint, &f.config, &f.transport, &f.error), WB_FATAL);
    assert_int_equal(f.error.cause, WB_CAUSE_CONFIG);
    if (!strstr(f.error.text, text) || strstr(f.error.text, "hush"))
        fail_msg("create: %s", f.error.text);
}

static void test_management_option(void **state)
{
    (void)state;
    refuse("", "is no URL");
    refuse("localhost", "is no URL");
    refuse("ftp://user:hush@localhost", "is no URL");
    refuse("file:///etc/passwd", "is no URL");
    refuse("http://user:hush@broker.example:15672", "clear text");
}

#else

static void test_management_option(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    f.config.management = "http://127.0.0.1:15672";
    assert_int_equal(
        f.ops->create(&f.host.host, &f.endpoint, &f.config, &f.transport, &f.error), WB_FATAL);
    assert_int_equal(f.error.cause, WB_CAUSE_CONFIG);
    assert_non_null(strstr(f.error.text, "without libcurl"));
}
#endif

/* ---- made anew while it runs ----------------------------------------------------- */

static void refuse_to_open(fixture *f, const char *words)
{
    int result = f->ops->open(f->transport, WB_SESSION_RECEIVE | WB_SESSION_SEND, 10, &f->session, &f->error);
    if (result != WB_NOT_CONNECTED || f->error.cause != WB_CAUSE_MISMATCH || !strstr(f->error.text, words))
        fail_msg("not \"%s\": result %d cause %d: %s", words, result, f->error.cause, f->error.text);
}

/* Until the session fails, as a worker would find out. */
static void receive_until_it_fails(fixture *f)
{
    const wb_incoming *message;
    size_t count;
    int64_t until = fixture_in(SECONDS(20));
    int result = WB_OK;
    while (result == WB_OK && wb_clock_monotonic() < until)
        result = f->ops->receive(f->session, fixture_in(WB_SECOND / 2), &message, 1, &count, &f->error);
    assert_int_equal(result, WB_NOT_CONNECTED);
}

/* What a start would refuse is refused when it connects again, and that is no end of it. */
static void test_anew_with_a_limit(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    install(&f);
    fixture_open(&f, 10);
    client_delete_queue(f.queue);
    receive_until_it_fails(&f);
    fixture_close(&f);
    declare_with(f.queue, "quorum", "x-max-length=5");
    for (int i = 0; i < 2; i++)
        refuse_to_open(&f, "x-max-length = 5");
    replace(f.queue, "x-max-length=5 x-overflow=reject-publish");
    replace(f.error_queue, "x-max-length=6");
    refuse_to_open(&f, "x-max-length = 6");
    client_delete_queue(f.error_queue); /* whoever moves something there is told, and nothing is lost */
    fixture_open(&f, 10);
    client_publish(f.queue, NULL, "anew", 4);
    fixture_receive(&f, &message, 1);
    acknowledge(&f, &message, 1);
    fixture_end(&f);
}

static void close_sending_connection(const fixture *f)
{
    char command[700];
    (void)snprintf(command, sizeof command,
                   "eval '[rabbit_networking:close_connection(P, \"away\") || [{pid, P}, {client_properties, C}] <- "
                   "rabbit_networking:connection_info_all([pid, client_properties]), "
                   "lists:member({<<\"connection_name\">>, longstr, <<\"waybill %s (send)\">>}, C)].'",
                   f->queue);
    fixture_broker("ctl", command);
}

/* Whichever connection it was: an operator may be at work. */
static void test_anew_after_sending_failed(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    install(&f);
    fixture_open(&f, 10);
    close_sending_connection(&f);
    receive_until_it_fails(&f);
    fixture_close(&f);
    replace(f.queue, "x-max-length=5");
    refuse_to_open(&f, "x-max-length = 5");
    fixture_end(&f);
}

/* Nothing is sent, and the broker tells nobody that the queue is another one. */
static void test_anew_in_silence(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    f.config.heartbeat = SECONDS(1);
    fixture_create(&f);
    install(&f);
    fixture_open(&f, 10);
    replace(f.queue, "x-max-length=5");
    receive_until_it_fails(&f);
    fixture_close(&f);
    refuse_to_open(&f, "x-max-length = 5");
    fixture_end(&f);
}

static void send_copy(fixture *f, int result, int cause, const char *words)
{
    wb_operation operation = fixture_operation(f->error_queue, "copy", "c");
    assert_int_equal(fixture_send(f, &operation, 1), WB_OK);
    if (operation.result != result || (result != WB_OK && operation.cause != cause) ||
        (words && !strstr(operation.reason, words)))
        fail_msg("not %d, %d: %d, %d: %s", result, cause, operation.result, operation.cause, operation.reason);
}

/* Some seconds after it was mended, as a worker tries again. */
static void send_until_confirmed(fixture *f)
{
    wb_operation operation;
    int64_t until = fixture_in(SECONDS(15));
    do {
        usleep(250000);
        operation = fixture_operation(f->error_queue, "copy", "c");
        assert_int_equal(fixture_send(f, &operation, 1), WB_OK);
    } while (operation.result == WB_REJECT && wb_clock_monotonic() < until);
    assert_int_equal(operation.result, WB_OK);
}

/* It would confirm what it drops. */
static void test_error_queue_anew(void **state)
{
    fixture f;
    (void)state;
    prepare(&f);
    fixture_create(&f);
    install(&f);
    fixture_open(&f, 10);
    replace(f.error_queue, "x-max-length=5");
    send_copy(&f, WB_REJECT, WB_CAUSE_REFUSED, "x-max-length = 5");
    client_delete_queue(f.error_queue);
    install(&f);
    send_copy(&f, WB_REJECT, WB_CAUSE_REFUSED, "x-max-length = 5"); /* it is not asked for each of many */
    send_until_confirmed(&f);
    client_delete_queue(f.error_queue);
    send_copy(&f, WB_REJECT, WB_CAUSE_UNROUTABLE, NULL);
    declare_with(f.error_queue, "quorum", "x-max-length=5");
    send_copy(&f, WB_REJECT, WB_CAUSE_REFUSED, "x-max-length = 5");
    fixture_end(&f);
}

/* Consumers in line get nothing as long as another one is there, and that is nothing to warn of. */
static void test_single_active(void **state)
{
    fixture f, other;
    const wb_incoming *message;
    size_t count;
    (void)state;
    prepare(&f);
    f.config.heartbeat = SECONDS(1);
    fixture_create(&f);
    declare_with(f.queue, "quorum", "x-single-active-consumer=true");
    install(&f);
    fixture_open(&f, 1);
    fixture_fill(&f, 3);
    other = f;
    fixture_open(&other, 10);
    int warnings = fixture_warnings();
    for (int64_t until = fixture_in(SECONDS(9)); wb_clock_monotonic() < until;)
        assert_int_equal(other.ops->receive(other.session, fixture_in(WB_SECOND / 2), &message, 1, &count, &other.error),
                         WB_OK);
    assert_int_equal(fixture_warnings(), warnings);
    fixture_close(&other);
    fixture_end(&f);
}

#ifdef HAVE_LIBCURL
/* An interface that does not answer. */
static int listen_somewhere(char url[64])
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, 64, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return listener;
}

/* Who receives and sends asks nobody but the broker. */
static void test_anew_without_management(void **state)
{
    fixture f;
    char url[64];
    (void)state;
    prepare(&f);
    int listener = listen_somewhere(url);
    f.config.management = url;
    f.config.heartbeat = SECONDS(1);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    send_copy(&f, WB_OK, 0, NULL);
    replace(f.queue, "x-max-length=5");
    receive_until_it_fails(&f);
    fixture_close(&f);
    refuse_to_open(&f, "x-max-length = 5");
    replace(f.queue, "x-max-length=5 x-overflow=reject-publish");
    fixture_open(&f, 10);
    assert_int_equal(accept(listener, NULL, NULL), -1);
    (void)close(listener);
    fixture_end(&f);
}
#endif

/* The channels that consume or publish; others are for declarations. */
static void list_channels(char *ret_list, size_t size)
{
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "%s/tests/integration/amqp-broker rabbitmqctl %s -q list_channels pid number | "
                   "grep '[^0-9]1$' | sort",
                   getenv("top_srcdir"), fixture_directory());
    FILE *list = popen(command, "r");
    assert_non_null(list);
    size_t length = fread(ret_list, 1, size - 1, list);
    ret_list[length] = '\0';
    assert_int_equal(pclose(list), 0);
    assert_int_not_equal(length, 0);
}

typedef struct neighbour {
    fixture f;
    pthread_t thread;
    int result;
} neighbour;

static void *receive_nothing(void *argument)
{
    neighbour *it = argument;
    const wb_incoming *message;
    size_t count;
    for (int64_t until = fixture_in(SECONDS(16)); it->result == WB_OK && wb_clock_monotonic() < until;)
        it->result = it->f.ops->receive(it->f.session, fixture_in(WB_SECOND / 2), &message, 1, &count, &it->f.error);
    return NULL;
}

/* Neighbours are silent at the same time, and each counts the others' consumers. */
static void test_silent_neighbours(void **state)
{
    enum { COUNT = 6 };
    fixture f;
    static neighbour all[COUNT];
    static char before[8192], after[8192];
    (void)state;
    prepare(&f);
    f.config.heartbeat = SECONDS(1);
    fixture_create(&f);
    install(&f);
    for (int i = 0; i < COUNT; i++) {
        all[i] = (neighbour){ .f = f };
        fixture_open(&all[i].f, 10);
    }
    list_channels(before, sizeof before);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(pthread_create(&all[i].thread, NULL, receive_nothing, &all[i]), 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    list_channels(after, sizeof after);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(all[i].result, WB_OK);
        fixture_close(&all[i].f);
    }
    assert_string_equal(after, before);
    fixture_end(&f);
}

/* The broker tells of consumers, in their order (rabbitmq_event_exchange). */
static amqp_connection_state_t watch_consumers(void)
{
    amqp_connection_state_t client = client_open();
    const amqp_bytes_t events = amqp_cstring_bytes("events");
    assert_non_null(amqp_queue_declare(client, 1, events, 0, 0, 1, 1, amqp_empty_table));
    assert_non_null(amqp_queue_bind(client, 1, events, amqp_cstring_bytes("amq.rabbitmq.event"),
                                    amqp_cstring_bytes("consumer.#"), amqp_empty_table));
    return client;
}

/* @return whether there was another event, and what it changed. */
static int next_event(amqp_connection_state_t client, int *ret_change)
{
    amqp_message_t message;
    amqp_rpc_reply_t reply = amqp_basic_get(client, 1, amqp_cstring_bytes("events"), 1);
    assert_int_equal(reply.reply_type, AMQP_RESPONSE_NORMAL);
    if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD)
        return 0;
    const amqp_basic_get_ok_t *got = reply.reply.decoded;
    *ret_change = memcmp(got->routing_key.bytes, "consumer.created", got->routing_key.len) == 0 ? 1 : -1;
    assert_int_equal(amqp_read_message(client, 1, &message, 0).reply_type, AMQP_RESPONSE_NORMAL);
    amqp_destroy_message(&message);
    return 1;
}

/* A consumer that is exchanged is there all the time: who uninstalls an endpoint or renames it asks for that. */
static void test_silent_is_counted(void **state)
{
    fixture f;
    static neighbour it;
    int consumers = 0, change, events = 0;
    (void)state;
    prepare(&f);
    f.config.heartbeat = SECONDS(1);
    fixture_create(&f);
    install(&f);
    amqp_connection_state_t client = watch_consumers();
    it = (neighbour){ .f = f };
    fixture_open(&it.f, 10);
    (void)receive_nothing(&it);
    assert_int_equal(it.result, WB_OK);
    for (; next_event(client, &change); events++)
        assert_in_range(consumers += change, 1, 2);
    assert_true(events >= 3);
    client_close(client);
    fixture_close(&it.f);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_queue),
        cmocka_unit_test(test_error_queue),
        cmocka_unit_test(test_existing_queue),
        cmocka_unit_test(test_silent_queue),
        cmocka_unit_test(test_other_arguments),
        cmocka_unit_test(test_other_arguments_classic),
        cmocka_unit_test(test_dead_letters),
        cmocka_unit_test(test_classic_queue),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_anew_with_a_limit),
        cmocka_unit_test(test_anew_after_sending_failed),
        cmocka_unit_test(test_anew_in_silence),
        cmocka_unit_test(test_error_queue_anew),
        cmocka_unit_test(test_single_active),
        cmocka_unit_test(test_silent_neighbours),
        cmocka_unit_test(test_silent_is_counted),
#ifdef HAVE_LIBCURL
        cmocka_unit_test(test_anew_without_management),
#endif
        cmocka_unit_test(test_management_option),
#ifdef HAVE_LIBCURL
        cmocka_unit_test(test_management),
        cmocka_unit_test(test_management_login),
        cmocka_unit_test(test_management_promises),
        cmocka_unit_test(test_findings),
#endif
    };
    return cmocka_run_group_tests_name("amqp limits", tests, NULL, NULL);
}

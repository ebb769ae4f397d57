/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kafka transport can decide without a broker: offsets and notes, names, refused
 * properties, whose slot it is, what errors mean and whose fault they are.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host.h"
#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-examine.h"
#include "plugins/transport/kafka/kafka-identity.h"
#include "plugins/transport/kafka/kafka-large.h"
#include "plugins/transport/kafka/kafka-map.h"
#include "plugins/transport/kafka/kafka-offsets.h"
#include "plugins/transport/kafka/kafka-properties.h"
#include "plugins/transport/kafka/kafka-refusals.h"
#include "plugins/transport/kafka/kafka-topology.h"
#include "plugins/transport/kafka/kafka-trial.h"

/* ---- offsets --------------------------------------------------------------------- */

static void test_low_water(void **state)
{
    wb_kafka_offsets offsets;
    (void)state;
    wb_kafka_offsets_init(&offsets, 10);
    assert_int_equal(wb_kafka_offsets_low(&offsets), 10);
    /* Offsets have gaps: compaction, ends of transactions. */
    for (int64_t offset = 12; offset < 20; offset += 2)
        assert_true(wb_kafka_offsets_add(&offsets, offset, 1));
    assert_int_equal(wb_kafka_offsets_low(&offsets), 12);
    wb_kafka_offsets_set(&offsets, 14, 1);
    wb_kafka_offsets_set(&offsets, 13, 1);
    assert_int_equal(wb_kafka_offsets_low(&offsets), 12);
    wb_kafka_offsets_set(&offsets, 12, 1);
    assert_int_equal(wb_kafka_offsets_low(&offsets), 16);
    wb_kafka_offsets_set(&offsets, 12, 0);
    assert_int_equal(wb_kafka_offsets_low(&offsets), 12);
    wb_kafka_offsets_set(&offsets, 12, 1);
    wb_kafka_offsets_trim(&offsets);
    wb_kafka_offsets_set(&offsets, 12, 0);
    assert_int_equal(wb_kafka_offsets_low(&offsets), 16);
    wb_kafka_offsets_set(&offsets, 16, 1);
    wb_kafka_offsets_set(&offsets, 18, 1);
    assert_int_equal(wb_kafka_offsets_low(&offsets), 19);
    wb_kafka_offsets_free(&offsets);
}

/* Against an array that does the obvious. */
static void test_random_order(void **state)
{
    enum { COUNT = 3000 };
    static unsigned char is_done[COUNT];
    wb_kafka_offsets offsets;
    size_t added = 0, low = 0;
    unsigned seed = 7;
    (void)state;
    wb_kafka_offsets_init(&offsets, 0);
    while (low < COUNT) {
        if (added < COUNT && rand_r(&seed) % 2) {
            assert_true(wb_kafka_offsets_add(&offsets, (int64_t)added++, 1));
        } else if (added > low) {
            size_t one = low + (size_t)rand_r(&seed) % (added - low);
            is_done[one] = 1;
            wb_kafka_offsets_set(&offsets, (int64_t)one, 1);
            if (rand_r(&seed) % 8 == 0 && one > low) {
                is_done[one] = 0;
                wb_kafka_offsets_set(&offsets, (int64_t)one, 0);
            }
        }
        while (low < added && is_done[low])
            low++;
        assert_int_equal(wb_kafka_offsets_low(&offsets), low);
        if (rand_r(&seed) % 3 == 0) {
            size_t done = 0;
            wb_kafka_offsets_trim(&offsets);
            for (size_t i = low; i < added; i++)
                done += is_done[i];
            assert_int_equal(offsets.done, done);
        }
    }
    wb_kafka_offsets_free(&offsets);
}

static void assert_note(wb_kafka_note note, uint32_t deliveries, uint32_t span, int is_there)
{
    assert_int_equal(note.deliveries, deliveries);
    assert_int_equal(note.span, span);
    assert_int_equal(note.is_there, is_there);
}

static void test_notes(void **state)
{
    static const char *const foreign[] = { "",
                                           "waybill/1 ",
                                           "waybill/1 1",
                                           "waybill/1 1 ",
                                           "waybill/1 1 2 ",
                                           "waybill/1 -1 2",
                                           "waybill/1 4294967296 1",
                                           "waybill/1 99999999999999999999999 1",
                                           "waybill/2 1 1",
                                           "somebody else's" };
    char text[WB_KAFKA_NOTE_SIZE];
    wb_kafka_offsets offsets;
    (void)state;
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        assert_note(wb_kafka_note_read(foreign[i], strlen(foreign[i])), 0, 0, 0);
    assert_note(wb_kafka_note_read("waybill/1 0 0", strlen("waybill/1 0 0")), 0, 0, 1);
    wb_kafka_note_write(text, (wb_kafka_note){ UINT32_MAX, UINT32_MAX, 1 });
    assert_int_equal(wb_kafka_note_read(text, strlen(text)).deliveries, UINT32_MAX);
    assert_int_equal(wb_kafka_note_read(text, strlen(text)).span, UINT32_MAX);
    /* Cut anywhere before its last number, it is nothing. */
    for (size_t size = 0; size <= strlen("waybill/1 4294967295 "); size++)
        assert_int_equal(wb_kafka_note_read(text, size).deliveries, 0);
    wb_kafka_offsets_init(&offsets, 5);
    assert_int_equal(wb_kafka_offsets_note(&offsets).deliveries, 0);
    assert_true(wb_kafka_offsets_add(&offsets, 7, 3));
    assert_true(wb_kafka_offsets_add(&offsets, 9, 1));
    assert_int_equal(wb_kafka_offsets_note(&offsets).deliveries, 3);
    assert_int_equal(wb_kafka_offsets_note(&offsets).span, 3);
    wb_kafka_offsets_recount(&offsets, 7, 4);
    assert_int_equal(wb_kafka_offsets_note(&offsets).deliveries, 4);
    assert_int_equal(wb_kafka_offsets_low_note(&offsets).deliveries, 4);
    wb_kafka_offsets_set(&offsets, 7, 1);
    assert_int_equal(wb_kafka_offsets_note(&offsets).deliveries, 4);
    assert_int_equal(wb_kafka_offsets_low_note(&offsets).deliveries, 1);
    assert_int_equal(wb_kafka_offsets_low_note(&offsets).span, 1);
    wb_kafka_offsets_trim(&offsets);
    assert_int_equal(wb_kafka_offsets_note(&offsets).deliveries, 1);
    wb_kafka_offsets_set(&offsets, 9, 1);
    assert_int_equal(wb_kafka_offsets_low_note(&offsets).deliveries, 0);
    wb_kafka_offsets_free(&offsets);
}

/* ---- configuration ---------------------------------------------------------------- */

static void test_refused_properties(void **state)
{
    static const char *const refused[] = {
        "bootstrap.servers", "metadata.broker.list", "security.protocol", "sasl.password",
        "ssl.key.pem", "ssl.keystore.password", "group.id", "group.instance.id",
        "transactional.id", "enable.auto.commit", "auto.commit.interval.ms",
        "enable.auto.offset.store", "auto.offset.reset", "isolation.level",
        "partition.assignment.strategy", "enable.idempotence", "acks", "request.required.acks",
        "partitioner", "message.timeout.ms", "delivery.report.only.error",
        "allow.auto.create.topics", "sasl.kerberos.kinit.cmd", "sasl.oauthbearer.config",
        "enable.sasl.oauthbearer.unsecure.jwt", "plugin.library.paths", "ssl.engine.location",
        "test.mock.num.brokers", "rebalance_cb", "opaque", "default_topic_conf_opaque",
        "queuing.strategy", "topic.blacklist", "group.protocol", "api.version.request",
        "broker.version.fallback", "ssl.providers"
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (!wb_kafka_property_refusal(refused[i], "x", 1))
            fail_msg("%s is passed on", refused[i]);
    assert_null(wb_kafka_property_refusal("compression.type", "lz4", 0));
    assert_null(wb_kafka_property_refusal("max.poll.interval.ms", "10000", 0));
    assert_null(wb_kafka_property_refusal("max.in.flight", "5", 0));
    assert_non_null(wb_kafka_property_refusal("max.in.flight", "6", 0));
    assert_non_null(
        wb_kafka_property_refusal("max.in.flight.requests.per.connection", "1000000", 0));
    const char *verify = "enable.ssl.certificate.verification";
    assert_null(wb_kafka_property_refusal(verify, "false", 1));
    assert_null(wb_kafka_property_refusal(verify, "true", 0));
    assert_non_null(wb_kafka_property_refusal(verify, "False", 0));
    assert_non_null(
        wb_kafka_property_refusal("ssl.endpoint.identification.algorithm", "none", 0));
}

static int apply(const char *name, const char *value, wb_error *error)
{
    wb_host_instance host;
    const wb_option_map map = { 1, &name, &value };
    wb_kafka_config config = { .brokers = "localhost", .properties = &map };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    wb_host_init(&host, "test", "kafka");
    int result = wb_kafka_properties_apply(&host.host, &config, conf, error);
    rd_kafka_conf_destroy(conf);
    return result;
}

static void test_wrong_properties(void **state)
{
    wb_error error;
    (void)state;
    assert_int_equal(apply("linger.ms", "3", &error), WB_OK);
    assert_int_equal(apply("linger.mss", "3", &error), WB_FATAL);
    assert_int_equal(error.cause, WB_CAUSE_CONFIG);
    assert_non_null(strstr(error.text, "linger.mss"));
    assert_int_equal(apply("linger.ms", "soon", &error), WB_FATAL);
    assert_non_null(strstr(error.text, "linger.ms"));
    /* A secret that stands where none belongs is not repeated. */
    assert_int_equal(apply("sasl.password", "correct horse", &error), WB_FATAL);
    assert_null(strstr(error.text, "correct horse"));
    assert_non_null(strstr(error.text, "option password"));
}

static int check(wb_kafka_config config, wb_error *error)
{
    wb_host_instance host;
    wb_host_init(&host, "test", "kafka");
    if (!config.partitions)
        config.partitions = config.replication = -1;
    return wb_kafka_config_check(&host.host, &config, 1 << 20, error);
}

static void assert_refused(wb_kafka_config config, const char *text)
{
    wb_error error;
    assert_int_equal(check(config, &error), WB_FATAL);
    assert_int_equal(error.cause, WB_CAUSE_CONFIG);
    if (!strstr(error.text, text))
        fail_msg("%s", error.text);
}

/* ---- what librdkafka makes of it ---- */

static wb_error trial_error;

static int try_config(const wb_kafka_config *config, int mode)
{
    wb_host_instance host;
    const wb_endpoint_info endpoint = { .struct_size = sizeof endpoint,
                                        .name = "orders",
                                        .mode = mode,
                                        .concurrency = 4,
                                        .body_max = 1 << 20 };
    wb_host_init(&host, "test", "kafka");
    wb_transport transport = { .host = &host.host, .endpoint = &endpoint, .config = config };
    transport.message_max = wb_kafka_config_message_max(config, endpoint.body_max);
    return wb_kafka_trial(&transport, &trial_error);
}

static wb_kafka_config usual(void)
{
    int64_t second = INT64_C(1000000000);
    return (wb_kafka_config){ .brokers = "localhost",
                              .connect_timeout = 10 * second,
                              .confirm_timeout = 30 * second,
                              .session_timeout = 10 * second,
                              .transaction_timeout = 60 * second,
                              .fetch_buffer = 12 << 20 };
}

static const int modes[] = { WB_MODE_NONE, WB_MODE_RECEIVE_ONLY, WB_MODE_SENDS_ATOMIC };

/* Whatever the table of options lets through is a client's configuration: each at its ends. */
static void test_ends_of_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < WB_KAFKA_OPTION_COUNT; i++)
        for (size_t j = 0; j < 6; j++) {
            const wb_option *option = &wb_kafka_options[i];
            wb_kafka_config config = usual();
            int64_t value = j & 1 ? option->maximum : option->minimum;
            if (option->minimum == option->maximum)
                continue;
            memcpy((char *)&config + option->offset, &value, sizeof value);
            if (try_config(&config, modes[j / 2]) != WB_OK)
                fail_msg("%s = %lld: %s", option->name, (long long)value, trial_error.text);
        }
}

/* What was added is found within a minute, by whoever has nothing to do, too. */
static void test_refresh(void **state)
{
    wb_host_instance host;
    wb_kafka_config config = usual();
    const wb_endpoint_info endpoint = { .struct_size = sizeof endpoint, .name = "orders", .mode = WB_MODE_RECEIVE_ONLY };
    (void)state;
    wb_host_init(&host, "test", "kafka");
    wb_transport transport = { .host = &host.host, .endpoint = &endpoint, .config = &config };
    rd_kafka_conf_t *conf = wb_kafka_conf_make(&transport, WB_KAFKA_ROLE_CONSUMER, "name", &trial_error);
    assert_non_null(conf);
    int64_t interval = wb_kafka_conf_number(conf, "topic.metadata.refresh.interval.ms", 0);
    assert_true(interval > 0 && interval <= 60000);
    rd_kafka_conf_destroy(conf);
}

/* Else each client waits a second when it ends, for a broker that wants its metrics (librdkafka 2.5 and later). */
static void test_no_metrics_are_pushed(void **state)
{
    wb_host_instance host;
    wb_kafka_config config = usual();
    const wb_endpoint_info endpoint = { .struct_size = sizeof endpoint, .name = "orders", .mode = WB_MODE_RECEIVE_ONLY };
    char value[8] = "";
    size_t size = sizeof value;
    (void)state;
    wb_host_init(&host, "test", "kafka");
    wb_transport transport = { .host = &host.host, .endpoint = &endpoint, .config = &config };
    rd_kafka_conf_t *conf = wb_kafka_conf_make(&transport, WB_KAFKA_ROLE_PRODUCER, "name", &trial_error);
    assert_non_null(conf);
    if (rd_kafka_conf_get(conf, "enable.metrics.push", value, &size) == RD_KAFKA_CONF_OK)
        assert_string_equal(value, "false");
    else
        assert_true(rd_kafka_version() < 0x02050000);
    rd_kafka_conf_destroy(conf);
}

static int try_properties(size_t count, const char *const *names, const char *const *values, int mode)
{
    const wb_option_map map = { count, names, values };
    wb_kafka_config config = usual();
    config.properties = &map;
    return try_config(&config, mode);
}

/* Right one by one, but not beside what else is set: named before anything is connected. */
static void test_discordant_properties(void **state)
{
    static const struct {
        const char *name, *value;
    } wrong[] = {
        { "max.poll.interval.ms", "1000" }, { "retries", "0" }, { "message.send.max.retries", "0" },
        { "fetch.max.bytes", "1" },         { "linger.ms", "soon" }, { "nosuch", "1" },
        { "acks", "0" },                    { "ssl.ca.location", "/nowhere" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (size_t j = 0; j < 3; j++) {
            const char *names[] = { "linger.ms", wrong[i].name, "statistics.interval.ms" };
            const char *values[] = { "1", wrong[i].value, "0" };
            if (try_properties(3, names, values, modes[j]) != WB_FATAL)
                fail_msg("%s = %s is taken", wrong[i].name, wrong[i].value);
            assert_int_equal(trial_error.cause, WB_CAUSE_CONFIG);
            if (!strstr(trial_error.text, wrong[i].name) || strncmp(trial_error.text, "properties: ", 12) != 0)
                fail_msg("%s: %s", wrong[i].name, trial_error.text);
            printf("# %s\n", trial_error.text);
        }
    for (size_t j = 0; j < 3; j++)
        assert_int_equal(try_properties(1, (const char *const[]){ "linger.ms" }, (const char *const[]){ "7" },
                                        modes[j]),
                         WB_OK);
}

static void test_options(void **state)
{
    wb_error error;
    wb_kafka_config config = { .brokers = "localhost:9092, 127.0.0.1:9093,[::1]:9094" };
    (void)state;
    assert_int_equal(wb_kafka_config_uses_tls(&config), 0);
    assert_int_equal(check(config, &error), WB_OK);
    config.brokers = "localhost:9092,k2.example:9092";
    assert_int_equal(wb_kafka_config_uses_tls(&config), 1);
    assert_int_equal(check(config, &error), WB_OK);
    config.brokers = "127.0.0.1.example:9092";
    assert_int_equal(wb_kafka_config_uses_tls(&config), 1);
    config.tls = WB_KAFKA_TLS_OFF;
    assert_refused(config, "allow_insecure");
    config.allow_insecure = 1;
    assert_int_equal(check(config, &error), WB_OK);
    assert_refused((wb_kafka_config){ .brokers = " , " }, "names no broker");
    assert_refused((wb_kafka_config){ .brokers = "SSL://localhost" }, "protocol");
    assert_refused((wb_kafka_config){ .brokers = "localhost", .tls_key_file = "k" },
                   "tls_cert_file");
    assert_refused((wb_kafka_config){ .brokers = "localhost", .sasl_mechanism = 1, .user = "u" },
                   "password");
    assert_refused((wb_kafka_config){ .brokers = "localhost", .password = "p" }, "sasl_mechanism");
    assert_refused((wb_kafka_config){ .brokers = "localhost", .message_max = 1 << 20 },
                   "message_max");
    assert_refused((wb_kafka_config){ .brokers = "localhost", .partitions = 3 }, "replication = 0");
}

static void test_topic_names(void **state)
{
    char topic[WB_KAFKA_TOPIC_SIZE], name[WB_KAFKA_TOPIC_SIZE + 1];
    (void)state;
    assert_null(wb_kafka_topic_name("Sales.OrderPlaced , Assembly", 1, topic));
    assert_string_equal(topic, "Sales.OrderPlaced");
    assert_null(wb_kafka_topic_name("Shop.Outer+Inner, Shop", 1, topic));
    assert_string_equal(topic, "Shop.Outer-2BInner");
    assert_null(wb_kafka_topic_name("Shop.Wrapper`1[[System.Int32, Lib, Version=1.0]], Shop", 1, topic));
    assert_string_equal(topic, "Shop.Wrapper-601-5B-5BSystem.Int32-5D-5D");
    assert_null(wb_kafka_topic_name("Shop.Pair`2[[A],[B]]", 1, topic));
    assert_string_equal(topic, "Shop.Pair-602-5B-5BA-5D-2C-5BB-5D-5D");
    assert_non_null(wb_kafka_topic_name("caf\xc3\xa9", 1, topic));
    /* not the topic of another type, nor another topic than before */
    assert_null(wb_kafka_topic_name("Shop.Outer-2BInner", 1, topic));
    assert_string_equal(topic, "Shop.Outer-2D2BInner");
    assert_null(wb_kafka_topic_name("order-placed-2b-2", 1, topic));
    assert_string_equal(topic, "order-placed-2b-2");
    assert_non_null(wb_kafka_topic_name("a\r\nb", 1, topic));
    assert_non_null(wb_kafka_topic_name("Shop.Outer+Inner", 0, topic));
    assert_non_null(wb_kafka_topic_name("Sales.OrderPlaced, Assembly", 0, topic));
    assert_non_null(wb_kafka_topic_name("", 0, topic));
    assert_non_null(wb_kafka_topic_name(" ,x", 1, topic));
    assert_non_null(wb_kafka_topic_name("..", 0, topic));
    assert_non_null(wb_kafka_topic_name("a/b", 0, topic));
    assert_non_null(wb_kafka_topic_name("caf\xc3\xa9", 0, topic));
    memset(name, 'n', sizeof name);
    name[250] = '\0';
    assert_non_null(wb_kafka_topic_name(name, 0, topic));
    name[249] = '\0';
    assert_null(wb_kafka_topic_name(name, 0, topic));
    assert_string_equal(topic, name);
    assert_null(wb_kafka_topic_name(name, 1, topic));
    assert_string_equal(topic, name);
    name[0] = '+';
    assert_non_null(wb_kafka_topic_name(name, 1, topic));
    name[247] = '\0';
    assert_null(wb_kafka_topic_name(name, 1, topic));
    assert_int_equal(strlen(topic), 249);
}

/* ---- identity, errors -------------------------------------------------------------- */

static void test_identity(void **state)
{
    char endpoint[64];
    char a[WB_KAFKA_NAME_SIZE], b[WB_KAFKA_NAME_SIZE], c[WB_KAFKA_NAME_SIZE];
    wb_kafka_identity one, other;
    (void)state;
    (void)snprintf(endpoint, sizeof endpoint, "identity-%p", (void *)&one);
    wb_kafka_identity_init(&one);
    wb_kafka_identity_init(&other);
    assert_int_equal(wb_kafka_identity_take(&one, endpoint, NULL, a), 0);
    assert_int_equal(wb_kafka_identity_take(&one, endpoint, NULL, b), 1);
    assert_int_equal(wb_kafka_identity_take(&other, endpoint, NULL, c), 0);
    assert_string_not_equal(a, b);
    assert_string_not_equal(a, c);
    /* What is free again is taken first, under the same name. */
    wb_kafka_identity_give_back(&one, 0);
    assert_int_equal(wb_kafka_identity_take(&one, endpoint, NULL, b), 0);
    assert_string_equal(a, b);
    wb_kafka_identity_destroy(&one);
    wb_kafka_identity_init(&one);
    assert_int_equal(wb_kafka_identity_take(&one, endpoint, NULL, b), 0);
    assert_string_equal(a, b);
    wb_kafka_identity_destroy(&one);
    wb_kafka_identity_destroy(&other);
    wb_kafka_identity_init(&one);
    assert_int_equal(wb_kafka_identity_take(&one, "orders", "blue", a), 0);
    assert_string_equal(a, "orders.0000.blue");
    wb_kafka_identity_destroy(&one);
}

/* Now and then a session is fenced by its own return; that often, it is a twin. */
static void test_fences(void **state)
{
    wb_kafka_identity identity;
    char name[WB_KAFKA_NAME_SIZE];
    int64_t now = 7 * WB_KAFKA_FENCES_TIME, pause = WB_KAFKA_FENCES_TIME / WB_KAFKA_FENCES;
    (void)state;
    wb_kafka_identity_init(&identity);
    assert_int_equal(wb_kafka_identity_take(&identity, "orders", "blue", name), 0);
    assert_int_equal(wb_kafka_identity_take(&identity, "orders", "blue", name), 1);
    for (int i = 0; i < 3 * WB_KAFKA_FENCES; i++)
        assert_false(wb_kafka_identity_note_fence(&identity, 0, now));
    for (int i = 1; i < WB_KAFKA_FENCES; i++) {
        wb_kafka_identity_give_back(&identity, 0);
        assert_int_equal(wb_kafka_identity_take(&identity, "orders", "blue", name), 0);
        now += pause;
        assert_int_equal(wb_kafka_identity_note_fence(&identity, 0, now), i == WB_KAFKA_FENCES - 1);
    }
    /* Of others, and of a time long past, it says nothing. */
    assert_false(wb_kafka_identity_note_fence(&identity, 1, now));
    assert_false(wb_kafka_identity_note_fence(&identity, -1, now));
    wb_kafka_identity_give_back(&identity, 0);
    assert_int_equal(wb_kafka_identity_take(&identity, "orders", "blue", name), 0);
    assert_false(wb_kafka_identity_note_fence(&identity, 0, now + 2 * pause));
    wb_kafka_identity_destroy(&identity);
}

static void test_deliveries(void **state)
{
    const rd_kafka_msg_status_t no = RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
    const rd_kafka_msg_status_t maybe = RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED;
    (void)state;
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR_NO_ERROR, maybe), WB_OK);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, no), WB_REJECT);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, no), WB_REJECT);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR__PURGE_QUEUE, no), WB_NOT_CONNECTED);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, maybe), WB_IN_DOUBT);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, maybe), WB_IN_DOUBT);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, maybe),
                     WB_IN_DOUBT);
    /* Refused, but an earlier try of the same may have arrived. */
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, maybe),
                     WB_IN_DOUBT);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, no),
                     WB_NOT_CONNECTED);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, no),
                     WB_FATAL);
    assert_int_equal(wb_kafka_map_delivery(RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, maybe),
                     WB_IN_DOUBT);
}

/* ---- whose fault ------------------------------------------------------------------ */

#define ERR(name) RD_KAFKA_RESP_ERR_##name
#define IS_IN(list, code) is_in(list, sizeof(list) / sizeof *(list), code)

/* Passes by itself: the worker waits, whoever asks. */
static const rd_kafka_resp_err_t unreachable[] = {
    ERR(_TRANSPORT), ERR(_ALL_BROKERS_DOWN), ERR(_RESOLVE), ERR(_TIMED_OUT), ERR(_TIMED_OUT_QUEUE),
    ERR(_MSG_TIMED_OUT), ERR(NETWORK_EXCEPTION), ERR(BROKER_NOT_AVAILABLE), ERR(_WAIT_COORD),
    ERR(_PURGE_QUEUE), ERR(_PURGE_INFLIGHT), ERR(_SSL),
};
static const rd_kafka_resp_err_t cannot_now[] = {
    ERR(UNKNOWN), ERR(NOT_ENOUGH_REPLICAS), ERR(NOT_ENOUGH_REPLICAS_AFTER_APPEND), ERR(_ISR_INSUFF),
    ERR(REQUEST_TIMED_OUT), ERR(KAFKA_STORAGE_ERROR), ERR(THROTTLING_QUOTA_EXCEEDED),
    ERR(LEADER_NOT_AVAILABLE), ERR(NOT_LEADER_FOR_PARTITION), ERR(REPLICA_NOT_AVAILABLE),
    ERR(ELIGIBLE_LEADERS_NOT_AVAILABLE), ERR(LISTENER_NOT_FOUND), ERR(NOT_CONTROLLER),
    /* a leader or a coordinator that was replaced: fenced are they, not who asks them */
    ERR(FENCED_LEADER_EPOCH), ERR(UNKNOWN_LEADER_EPOCH), ERR(TRANSACTION_COORDINATOR_FENCED),
    ERR(COORDINATOR_LOAD_IN_PROGRESS), ERR(COORDINATOR_NOT_AVAILABLE), ERR(NOT_COORDINATOR),
    ERR(CONCURRENT_TRANSACTIONS), ERR(UNSTABLE_OFFSET_COMMIT), ERR(OFFSET_NOT_AVAILABLE),
    ERR(REBALANCE_IN_PROGRESS), ERR(ILLEGAL_GENERATION), ERR(UNKNOWN_MEMBER_ID),
    ERR(LOG_DIR_NOT_FOUND), ERR(INVALID_MSG), ERR(_PARTIAL),
};
/* Somebody else has our name. */
static const rd_kafka_resp_err_t fences[] = {
    ERR(_FENCED), ERR(PRODUCER_FENCED), ERR(INVALID_PRODUCER_EPOCH), ERR(FENCED_INSTANCE_ID),
};
static const struct refusal {
    rd_kafka_resp_err_t code;
    int session, cause, is_shared;
} of_operation[] = {
    { ERR(MSG_SIZE_TOO_LARGE), WB_NOT_CONNECTED, WB_CAUSE_TOO_LARGE, 1 },
    { ERR(RECORD_LIST_TOO_LARGE), WB_NOT_CONNECTED, WB_CAUSE_TOO_LARGE, 1 },
    { ERR(INVALID_MSG_SIZE), WB_NOT_CONNECTED, WB_CAUSE_OTHER, 1 },
    { ERR(INVALID_RECORD), WB_NOT_CONNECTED, WB_CAUSE_OTHER, 1 },
    { ERR(INVALID_TIMESTAMP), WB_NOT_CONNECTED, WB_CAUSE_OTHER, 1 },
    { ERR(UNKNOWN_TOPIC_OR_PART), WB_NOT_CONNECTED, WB_CAUSE_MISSING, 0 },
    { ERR(_UNKNOWN_TOPIC), WB_NOT_CONNECTED, WB_CAUSE_MISSING, 0 },
    { ERR(_UNKNOWN_PARTITION), WB_NOT_CONNECTED, WB_CAUSE_MISSING, 0 },
    { ERR(TOPIC_EXCEPTION), WB_FATAL, WB_CAUSE_CONFIG, 0 },
    { ERR(TOPIC_AUTHORIZATION_FAILED), WB_FATAL, WB_CAUSE_REFUSED, 0 },
    { ERR(_INVALID_ARG), WB_FATAL, WB_CAUSE_CONFIG, 0 },
    { ERR(POLICY_VIOLATION), WB_FATAL, WB_CAUSE_CONFIG, 1 },
    { ERR(UNSUPPORTED_FOR_MESSAGE_FORMAT), WB_FATAL, WB_CAUSE_CONFIG, 0 },
};
/* Waiting is of no use: somebody must act. */
static const rd_kafka_resp_err_t of_login[] = {
    ERR(GROUP_AUTHORIZATION_FAILED), ERR(CLUSTER_AUTHORIZATION_FAILED),
    ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), ERR(SASL_AUTHENTICATION_FAILED),
    ERR(UNSUPPORTED_SASL_MECHANISM), ERR(ILLEGAL_SASL_STATE), ERR(SECURITY_DISABLED), ERR(_AUTHENTICATION),
};
static const rd_kafka_resp_err_t of_configuration[] = {
    ERR(INVALID_SESSION_TIMEOUT), ERR(INVALID_TRANSACTION_TIMEOUT), ERR(INVALID_GROUP_ID),
    ERR(INCONSISTENT_GROUP_PROTOCOL), ERR(INVALID_PARTITIONS),
    ERR(INVALID_REPLICATION_FACTOR), ERR(INVALID_CONFIG), ERR(UNSUPPORTED_VERSION), ERR(_UNSUPPORTED_FEATURE),
    ERR(UNSUPPORTED_COMPRESSION_TYPE), ERR(INVALID_REQUIRED_ACKS), ERR(GROUP_MAX_SIZE_REACHED),
};
/* Of any list: with the others a consumer goes on, once they have passed. */
static const rd_kafka_resp_err_t ends_consumer[] = {
    ERR(OFFSET_OUT_OF_RANGE), ERR(_AUTO_OFFSET_RESET), ERR(_BAD_MSG), ERR(_BAD_COMPRESSION), ERR(_FATAL),
    ERR(FENCED_INSTANCE_ID), ERR(MSG_SIZE_TOO_LARGE), ERR(UNKNOWN_TOPIC_OR_PART),
    ERR(TOPIC_AUTHORIZATION_FAILED), ERR(GROUP_AUTHORIZATION_FAILED), ERR(INVALID_SESSION_TIMEOUT),
    ERR(INCONSISTENT_GROUP_PROTOCOL), ERR(GROUP_MAX_SIZE_REACHED),
};

static int is_in(const rd_kafka_resp_err_t *list, size_t count, rd_kafka_resp_err_t code)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == code)
            return 1;
    return 0;
}

static const struct refusal *find_refusal(rd_kafka_resp_err_t code)
{
    for (size_t i = 0; i < sizeof of_operation / sizeof *of_operation; i++)
        if (of_operation[i].code == code)
            return &of_operation[i];
    return NULL;
}

static void assert_code(rd_kafka_resp_err_t code, int session, int delivery, int cause)
{
    wb_kafka_code row = wb_kafka_map_code(code);
    if (row.session != session || row.delivery != delivery || row.cause != cause)
        fail_msg("%s: session %d, delivery %d, cause %d", rd_kafka_err2name(code), row.session,
                 row.delivery, row.cause);
}

static void assert_meaning(rd_kafka_resp_err_t code)
{
    const struct refusal *refusal = find_refusal(code);
    if (refusal)
        assert_code(code, refusal->session, WB_REJECT, refusal->cause);
    else if (IS_IN(unreachable, code))
        assert_code(code, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE);
    else if (IS_IN(cannot_now, code))
        assert_code(code, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_SERVER);
    else if (IS_IN(fences, code))
        assert_code(code, WB_FATAL, WB_NOT_CONNECTED, WB_CAUSE_OTHER);
    else if (IS_IN(of_login, code))
        assert_code(code, WB_FATAL, WB_FATAL, WB_CAUSE_REFUSED);
    else if (IS_IN(of_configuration, code))
        assert_code(code, WB_FATAL, WB_FATAL, WB_CAUSE_CONFIG);
    else /* the session's, or what nobody foresaw: another begins anew; it never ends the endpoint */
        assert_code(code, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_OTHER);
}

static void test_every_code(void **state)
{
    const struct rd_kafka_err_desc *all;
    size_t count;
    (void)state;
    rd_kafka_get_err_descs(&all, &count);
    for (size_t i = 0; i < count; i++) {
        const rd_kafka_resp_err_t code = all[i].code;
        const struct refusal *refusal = find_refusal(code);
        assert_meaning(code);
        if (wb_kafka_map_is_fenced(code) != IS_IN(fences, code) ||
            wb_kafka_map_is_shared(code) != (refusal && refusal->is_shared) ||
            wb_kafka_map_ends_consumer(code) != IS_IN(ends_consumer, code))
            fail_msg("%s: flags %u", rd_kafka_err2name(code), wb_kafka_map_code(code).flags);
    }
    assert_meaning((rd_kafka_resp_err_t)4711);
}

static void test_failure(void **state)
{
    wb_kafka_failure failure = { 0 };
    (void)state;
    assert_int_equal(wb_kafka_failure_map(&failure, ERR(KAFKA_STORAGE_ERROR), "send", NULL),
                     WB_NOT_CONNECTED);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    assert_non_null(strstr(failure.text, "could not send"));
    /* The first reason is the one. */
    assert_int_equal(wb_kafka_failure_map(&failure, ERR(_SSL), "connect", NULL), WB_NOT_CONNECTED);
    assert_int_equal(failure.code, ERR(KAFKA_STORAGE_ERROR));
}

/* What librdkafka says of a connection tells more than its code. */
static void test_sayings(void **state)
{
    static const struct {
        rd_kafka_resp_err_t code;
        const char *text;
        int result;
        const char *remedy;
    } rows[] = {
        { ERR(_SSL), "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: ...",
          WB_FATAL, "check tls_ca_file" },
        { ERR(_SSL), "SSL handshake failed: error:0A000126:SSL routines::unexpected eof while reading",
          WB_NOT_CONNECTED, "offers TLS" },
        { ERR(_TRANSPORT), "error:0A000126:SSL routines::unexpected eof while reading (after 8ms in state SSL_HANDSHAKE)",
          WB_NOT_CONNECTED, "offers TLS" },
        { ERR(_TRANSPORT), "Receive failed: sslv3 alert certificate unknown: SSL alert number 46",
          WB_FATAL, "tls_cert_file" },
        { ERR(_TRANSPORT), "Receive failed: sslv3 alert bad certificate: SSL alert number 42",
          WB_FATAL, "tls_cert_file" },
        { ERR(_TRANSPORT), "Connect failed: Connection refused", WB_NOT_CONNECTED, "refused" },
        { ERR(_AUTHENTICATION), "SASL authentication error: invalid credentials", WB_FATAL,
          "check user and password" },
        { ERR(GROUP_AUTHORIZATION_FAILED), NULL, WB_FATAL, "grant the user READ on the group" },
        { ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), NULL, WB_FATAL, "grant the user WRITE" },
        { ERR(CLUSTER_AUTHORIZATION_FAILED), NULL, WB_FATAL, "IDEMPOTENT_WRITE" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_kafka_failure failure = { 0 };
        int result = wb_kafka_failure_map(&failure, rows[i].code, "connect", rows[i].text);
        if (result != rows[i].result || !strstr(failure.text, rows[i].remedy))
            fail_msg("%zu: %d: %s", i, result, failure.text);
        assert_int_equal(wb_kafka_map_is_refusal(rows[i].code, rows[i].text), result == WB_FATAL);
    }
}

/* ---- turns, refusals --------------------------------------------------------------- */

static void test_line(void **state)
{
    wb_kafka_large_line line;
    wb_kafka_large_place a = { 0 }, b = { 0 }, c = { 0 };
    (void)state;
    wb_kafka_large_init(&line);
    assert_true(wb_kafka_large_ask(&line, &a));
    assert_true(wb_kafka_large_ask(&line, &a));
    assert_false(wb_kafka_large_ask(&line, &b));
    assert_false(wb_kafka_large_ask(&line, &c));
    assert_false(wb_kafka_large_ask(&line, &b));
    wb_kafka_large_leave(&line, &a);
    wb_kafka_large_leave(&line, &a);
    assert_false(wb_kafka_large_ask(&line, &a)); /* behind those that asked before */
    assert_false(wb_kafka_large_ask(&line, &c));
    assert_true(wb_kafka_large_ask(&line, &b));
    wb_kafka_large_leave(&line, &c);
    wb_kafka_large_leave(&line, &b);
    assert_true(wb_kafka_large_ask(&line, &a));
    wb_kafka_large_leave(&line, &a);
    assert_null(line.first);
    assert_null(line.last);
    assert_true(wb_kafka_large_ask(&line, &c));
    wb_kafka_large_destroy(&line);
}

static void test_refusals(void **state)
{
    const int64_t second = INT64_C(1000000000);
    static wb_kafka_refusals refusals;
    wb_header header = { "name", "value", 4, 5 };
    wb_operation one = { .id = "id", .id_size = 2, .headers = &header, .header_count = 1,
                         .body = "body", .body_size = 4 };
    wb_operation other = one;
    (void)state;
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &one, second), 0);
    wb_kafka_refusals_add(&refusals, "t", &one, ERR(MSG_SIZE_TOO_LARGE), second);
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &one, 2 * second),
                     ERR(MSG_SIZE_TOO_LARGE));
    /* Elsewhere, later, another or another size of it: not refused. */
    assert_int_equal(wb_kafka_refusals_find(&refusals, "u", &one, 2 * second), 0);
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &one, 40 * second), 0);
    other.id = "ie";
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &other, 2 * second), 0);
    other = one;
    other.body_size = 3;
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &other, 2 * second), 0);
    header.value_size = 4;
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &one, 2 * second), 0);
    header.value_size = 5;
    /* Without an id, the body tells. */
    one.id_size = other.id_size = 0;
    other.body_size = 4;
    other.body = "bodY";
    wb_kafka_refusals_add(&refusals, "t", &one, ERR(INVALID_RECORD), second);
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &one, second), ERR(INVALID_RECORD));
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &other, second), 0);
    /* The newest are kept. */
    for (int i = 0; i < WB_KAFKA_REFUSALS; i++)
        wb_kafka_refusals_add(&refusals, "t", &other, ERR(POLICY_VIOLATION), second);
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &one, second), 0);
    assert_int_equal(wb_kafka_refusals_find(&refusals, "t", &other, second), ERR(POLICY_VIOLATION));
}

/* ---- what would bite ------------------------------------------------------------- */

static void note_severity(void *argument, const wb_finding *finding)
{
    int *severity = argument;
    assert_int_equal(*severity, 0);
    *severity = finding->severity;
}

/* What one broker cannot show. */
static void test_replicas(void **state)
{
    static const struct {
        int replicas;
        const char *insync;
        int severity, insync_severity;
    } topics[] = {
        { 0, "1", 0, 0 },
        { 1, "1", WB_FINDING_DANGER, 0 },
        { 2, "1", WB_FINDING_WARNING, WB_FINDING_DANGER },
        { 3, "1", 0, WB_FINDING_DANGER },
        { 3, "2", 0, 0 },
    };
    const wb_kafka_config config = { .brokers = "localhost" };
    const wb_transport transport = { .config = &config };
    (void)state;
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        const wb_kafka_examined it = { .transport = &transport, .topic = "orders", .is_read = 1, .replicas = topics[i].replicas };
        int severity = 0;
        const wb_examination asked = { .struct_size = sizeof asked, .found = note_severity, .argument = &severity };
        wb_kafka_examine_replicas(&it, &asked);
        assert_int_equal(severity, topics[i].severity);
        severity = 0;
        wb_kafka_examine_property(&it, "min.insync.replicas", topics[i].insync, &asked);
        assert_int_equal(severity, topics[i].insync_severity);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_low_water),          cmocka_unit_test(test_random_order),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_notes),              cmocka_unit_test(test_refused_properties),
        cmocka_unit_test(test_wrong_properties),   cmocka_unit_test(test_options),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_no_metrics_are_pushed),
        cmocka_unit_test(test_ends_of_options),    cmocka_unit_test(test_discordant_properties),
        cmocka_unit_test(test_topic_names),        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_fences),             cmocka_unit_test(test_deliveries),
        cmocka_unit_test(test_every_code),         cmocka_unit_test(test_failure),
        cmocka_unit_test(test_sayings),
        cmocka_unit_test(test_line),               cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

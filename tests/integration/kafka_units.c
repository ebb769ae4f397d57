/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kafka transport can decide without a broker: offsets and notes, names, refused
 * properties, whose slot it is, what errors mean.
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
#include "plugins/transport/kafka/kafka-identity.h"
#include "plugins/transport/kafka/kafka-map.h"
#include "plugins/transport/kafka/kafka-offsets.h"
#include "plugins/transport/kafka/kafka-properties.h"
#include "plugins/transport/kafka/kafka-topology.h"

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
        }
        while (low < added && is_done[low])
            low++;
        assert_int_equal(wb_kafka_offsets_low(&offsets), low);
        if (rand_r(&seed) % 3 == 0)
            wb_kafka_offsets_trim(&offsets);
    }
    wb_kafka_offsets_free(&offsets);
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
        assert_int_equal(wb_kafka_note_read(foreign[i], strlen(foreign[i])).deliveries, 0);
    wb_kafka_note_write(text, (wb_kafka_note){ UINT32_MAX, UINT32_MAX });
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
        "queuing.strategy"
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
    assert_string_equal(a, "orders.blue.0");
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_low_water),          cmocka_unit_test(test_random_order),
        cmocka_unit_test(test_notes),              cmocka_unit_test(test_refused_properties),
        cmocka_unit_test(test_wrong_properties),   cmocka_unit_test(test_options),
        cmocka_unit_test(test_topic_names),        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_fences),
        cmocka_unit_test(test_deliveries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

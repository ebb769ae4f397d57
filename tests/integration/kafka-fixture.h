/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the kafka transport share: the plugin, loaded the way the host loads it
 * and driven through its SPI, with a host that counts log lines and crash points; and a plain
 * client, to prepare and to look at the broker from outside.
 *
 * The environment names the broker: KAFKA_BROKERS, and KAFKA_PREFIX for names nobody else has.
 */
#ifndef WB_TEST_KAFKA_FIXTURE_H
#define WB_TEST_KAFKA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <librdkafka/rdkafka.h>
#include <waybill/sys/transport.h>

#include "core/base/clock.h"
#include "core/base/host.h"
#include "plugins/transport/kafka/kafka-options.h"

#define SECONDS(n) ((n) * WB_SECOND)

/** One endpoint of its own, with topics nobody else has. */
typedef struct fixture {
    wb_host_instance host;
    wb_endpoint_info endpoint;
    wb_kafka_config config;
    const wb_transport_ops *ops;
    wb_transport *transport;
    wb_transport_session *session; /* closed by fixture_end() when open */
    wb_error error;
    char queue[128];
    char error_queue[140];
} fixture;

/** The plugin's operations. */
const wb_transport_ops *fixture_ops(void);
/** The default of an option that is a size in MiB, in bytes. */
int64_t fixture_default_size(const char *option);
/** Fill in defaults and new names; no instance yet, so that tests may change the
 *  configuration. One partition. */
void fixture_prepare(fixture *f);
/** A name of a topic nobody else has. */
void fixture_name(char *name, size_t size);
/** Make the instance. */
void fixture_create(fixture *f);
/** create, install, and open a session for both purposes. */
void fixture_start(fixture *f, uint32_t prefetch);
/** prepare and start. */
void fixture_begin(fixture *f, uint32_t prefetch);
void fixture_open(fixture *f, uint32_t prefetch);
void fixture_close(fixture *f);
void fixture_end(fixture *f);

int64_t fixture_in(int64_t duration);

/** Receive until `count` messages are there (fails after 30 s). */
void fixture_receive(fixture *f, const wb_incoming **messages, size_t count);
/** Nothing arrives for a quarter of a second. */
void fixture_receive_none(fixture *f);
void fixture_acknowledge(fixture *f, const wb_incoming *const *messages, size_t count);
/** Send these and return what send() returned. */
int fixture_send(fixture *f, wb_operation *operations, size_t count);
/** A mandatory send without headers; `body` is a string. */
wb_operation fixture_operation(const char *destination, const char *id, const char *body);
/** Send `count` messages "m-0".. to the fixture's own queue; all must be confirmed. */
void fixture_fill(fixture *f, size_t count);
void fixture_assert_failed(const fixture *f, int got, int result, int cause, const char *text);

/** Lines logged at warning level or worse; whether a line, other than a debug line, was logged
 *  that holds a text. */
int fixture_warnings(void);
int fixture_logged(const char *text);
/** How many of the newest 256 lines, since they were forgotten, hold it. */
int fixture_count_logged(const char *text);
void fixture_forget_lines(void);
int fixture_crash_points(const char *name);
/** Called at each crash point; NULL: no longer. */
extern void (*fixture_at_point)(const char *name);

/** A plain producer and what it does. */
rd_kafka_t *client_open(void);
void client_close(rd_kafka_t *client);
void client_make_topic(rd_kafka_t *client, const char *topic, int partitions);
/** The same with a property of the topic. */
void client_make_topic_with(rd_kafka_t *client, const char *topic, int partitions,
                            const char *name, const char *value);
/** Set a property of a topic; all others become defaults. Until the brokers say so. */
void client_configure_topic(rd_kafka_t *client, const char *topic, const char *name, const char *value);
/** Add partitions up to `partitions`. */
void client_add_partitions(rd_kafka_t *client, const char *topic, int partitions);
/** Produce a message, with headers that are taken over or NULL; all arrive with a flush. */
void client_produce(rd_kafka_t *client, const char *topic, int32_t partition, const void *body,
                    size_t size, rd_kafka_headers_t *headers);
void client_flush(rd_kafka_t *client);
void client_delete_topic(rd_kafka_t *client, const char *topic);
/** Delete all messages before an offset of partition 0. */
void client_delete_records(rd_kafka_t *client, const char *topic, int64_t before);
/** The number of partitions, 0 for no such topic. */
int client_count_partitions(rd_kafka_t *client, const char *topic);
/** The committed offset of a group in a partition, or -1001; its note if wanted. */
int64_t client_committed(const char *group, const char *topic, int32_t partition, char *note,
                         size_t note_size);

#endif

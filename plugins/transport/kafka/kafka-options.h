/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the kafka transport and what follows from them.
 */
#ifndef WB_KAFKA_OPTIONS_H
#define WB_KAFKA_OPTIONS_H

#include <waybill/sys/plugin.h>

/* Values of wb_kafka_config.tls, in the order of its choices. */
#define WB_KAFKA_TLS_AUTO 0
#define WB_KAFKA_TLS_ON 1
#define WB_KAFKA_TLS_OFF 2

/* Values of wb_kafka_config.event_start, in the order of its choices. */
#define WB_KAFKA_START_EARLIEST 0
#define WB_KAFKA_START_LATEST 1

/** Longest value of `instance`. */
#define WB_KAFKA_INSTANCE_MAX 127

/** Filled by the host from wb_kafka_options. Durations in nanoseconds. */
typedef struct wb_kafka_config {
    const char *brokers;
    int32_t tls;
    const char *tls_ca_file;
    const char *tls_cert_file;
    const char *tls_key_file;
    const char *tls_key_password;
    int32_t sasl_mechanism; /* 0: none, else an index into its choices */
    const char *user;
    const char *password;
    int32_t allow_insecure;
    int64_t connect_timeout;
    int64_t confirm_timeout;
    int64_t session_timeout;
    int64_t transaction_timeout;
    int64_t partitions;  /* -1: the broker's default */
    int64_t replication; /* -1: the broker's default */
    int64_t message_max; /* 0: body_max and a MiB */
    int64_t fetch_buffer;
    int32_t event_start;
    const char *instance; /* NULL: host name and number */
    const wb_option_map *properties;
} wb_kafka_config;

#define WB_KAFKA_OPTION_COUNT 21
extern const wb_option wb_kafka_options[WB_KAFKA_OPTION_COUNT];

/** Whether connections are encrypted: 1 or 0. */
int wb_kafka_config_uses_tls(const wb_kafka_config *config);

/** Whether every broker named is on this machine, by its name alone. */
int wb_kafka_config_is_local(const wb_kafka_config *config);

/** Largest message, with headers, in the endpoint's topics. */
int64_t wb_kafka_config_message_max(const wb_kafka_config *config, int64_t body_max);

/** The librdkafka name of the SASL mechanism, or NULL for none. */
const char *wb_kafka_config_mechanism(const wb_kafka_config *config);

/** Refuse what single options cannot: plain text off this machine, half a client
 *  certificate, a user without mechanism. @return WB_OK, or WB_FATAL with
 *  WB_CAUSE_CONFIG. */
int wb_kafka_config_check(const wb_host *host, const wb_kafka_config *config, int64_t body_max,
                          wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the amqp transport and what follows from them.
 */
#ifndef WB_AMQP_OPTIONS_H
#define WB_AMQP_OPTIONS_H

#include <waybill/sys/plugin.h>

/* Values of wb_amqp_config.queue_type, in the order of its choices. */
#define WB_AMQP_QUEUE_QUORUM 0
#define WB_AMQP_QUEUE_CLASSIC 1

/* Values of wb_amqp_config.error_queue_type, in the order of its choices. */
#define WB_AMQP_ERROR_QUEUE_SAME 0
#define WB_AMQP_ERROR_QUEUE_QUORUM 1
#define WB_AMQP_ERROR_QUEUE_CLASSIC 2

/* Values of wb_amqp_config.topology, in the order of its choices. */
#define WB_AMQP_TOPOLOGY_CONVENTIONAL 0
#define WB_AMQP_TOPOLOGY_DIRECT 1

/* Values of wb_amqp_config.tls, in the order of its choices. */
#define WB_AMQP_TLS_AUTO 0
#define WB_AMQP_TLS_ON 1
#define WB_AMQP_TLS_OFF 2

/* Values of wb_amqp_config.sasl, in the order of its choices. */
#define WB_AMQP_SASL_PLAIN 0
#define WB_AMQP_SASL_EXTERNAL 1

/** Filled by the host from wb_amqp_options. Durations in nanoseconds. */
typedef struct wb_amqp_config {
    const char *host;
    const char *hosts; /* NULL: `host` alone */
    int64_t port; /* 0: what the protocol says */
    const char *vhost;
    const char *user;
    const char *password;
    int64_t heartbeat;
    int32_t queue_type;
    int32_t error_queue_type;
    int32_t topology;
    const wb_option_list *routing_keys; /* "TYPE=KEY"; NULL: none */
    const char *dead_letter_exchange; /* NULL: none */
    int64_t connect_timeout;
    int64_t confirm_timeout;
    int32_t tls;
    const char *tls_ca_file;
    const char *tls_cert_file;
    const char *tls_key_file;
    int32_t sasl;
    int32_t allow_insecure;
    const char *management; /* NULL: not asked */
} wb_amqp_config;

#define WB_AMQP_OPTION_COUNT 21
extern const wb_option wb_amqp_options[WB_AMQP_OPTION_COUNT];

/** Whether connections are encrypted: 1 or 0. */
int wb_amqp_config_uses_tls(const wb_amqp_config *config);

/** The type of the error queue: WB_AMQP_QUEUE_x. */
int wb_amqp_config_error_queue_type(const wb_amqp_config *config);

/** Refuse what single options cannot: plain text or the default password off this
 *  machine, half a client certificate, a login by a certificate that is not there. @return WB_OK, or WB_FATAL with
 *  WB_CAUSE_CONFIG. */
int wb_amqp_config_check(const wb_host *host, const wb_amqp_config *config, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin's options.
 */
#ifndef WB_OTLP_OPTIONS_H
#define WB_OTLP_OPTIONS_H

#include <stdint.h>
#include <waybill/sys/observer.h>

/** Filled by the loader from the table below. Durations are nanoseconds. */
typedef struct wb_otlp_config {
    const char *url;
    const wb_option_map *headers; /* NULL: none */
    const char *service_name;     /* NULL: the endpoint's name */
    const char *tls_ca_file;      /* NULL: the system's authorities */
    int32_t allow_insecure;
    int64_t one_in;
    int64_t batch_max;
    int64_t queue_max;
    int64_t interval;
    int64_t timeout;
} wb_otlp_config;

#define WB_OTLP_OPTION_COUNT 10
extern const wb_option wb_otlp_options[WB_OTLP_OPTION_COUNT];

/** What can be known without a network. @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG. */
int wb_otlp_config_check(const wb_host *host, const wb_otlp_config *config, wb_error *error);

#endif

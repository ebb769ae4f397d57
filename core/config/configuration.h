/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: what a file says, checked and typed. Plugins' own options stay a
 * tree here (wb_plugin_choice.node); core/plugin reads them with the plugin's table.
 *
 * Threads: made on the main thread before any other starts, constant afterwards.
 */
#ifndef WB_CONFIG_CONFIGURATION_H
#define WB_CONFIG_CONFIGURATION_H

#include <waybill/handler.h>

#include "core/base/type_bases.h"
#include "core/base/type_policy.h"
#include "core/config/conf_node.h"
#include "core/config/option.h"

/** Endpoint names, and names of error and audit queues: 1 to 200 printable ASCII characters without
 *  blanks, quotes, back-quotes and backslashes. They become queue, topic and table names;
 *  a transport may be stricter and says so when it is created. */
#define WB_ENDPOINT_NAME_MAX 200

/** Whether it can be such a name. */
int wb_config_is_name(const char *name);

/** A plugin selected by the `transport`, `persistence`, `outbox.deduplication.store` or `observer` group. */
typedef struct wb_plugin_choice {
    const char *plugin;       /* its name; NULL when the group is absent or names none */
    const wb_conf_node *node; /* the group with the plugin's options; NULL when absent */
    wb_conf_origin at;        /* of the group, or of the endpoint when it is absent */
} wb_plugin_choice;

/** One element of `handlers`. */
typedef struct wb_handler_choice {
    const char *path; /* as written */
    wb_conf_origin at;
} wb_handler_choice;

/* The tables of options, in the order of wb_config_sections(). */
#define WB_SECTION_TOP 0
#define WB_SECTION_ENDPOINT 1
#define WB_SECTION_OUTBOX 2
#define WB_SECTION_RECOVERABILITY 3
#define WB_SECTION_DELAYED 4
#define WB_SECTION_AUDIT 5
#define WB_SECTION_SESSION 6
#define WB_SECTION_DEDUPLICATION 7
#define WB_SECTION_FAILURES 8
#define WB_SECTION_HTTP 9
#define WB_SECTION_CONSOLE 10
#define WB_SECTION_COUNT 11

/* What becomes of an endpoint whose workers gave up: wb_endpoint_config.on_endpoint_failure. */
#define WB_ON_FAILURE_RESTART 0
#define WB_ON_FAILURE_EXIT 1

/* What an open circuit breaker does: wb_endpoint_config.delayed_delivery.on_circuit_open. */
#define WB_ON_CIRCUIT_OPEN_LOG 0
#define WB_ON_CIRCUIT_OPEN_STOP 1
/* What becomes of an endpoint whose servers are not there at the start: wb_endpoint_config.start. */
#define WB_START_FAIL 0
#define WB_START_WAIT 1

/* When a session's commit needs the broker: wb_endpoint_config.session.mode. */
#define WB_SESSION_CONTROL_MESSAGE 0
#define WB_SESSION_STORE_AND_FORWARD 1

/** One endpoint. Durations are nanoseconds, sizes bytes. The defaults are in the option
 *  tables (config_tables.c). */
typedef struct wb_endpoint_config {
    const char *name;  /* "" when it was missing */
    wb_conf_origin at; /* of the endpoint's group */
    int has_errors;    /* 1: a problem was reported for this endpoint; do not run it */

    const wb_handler_choice *handlers;
    size_t handler_count;
    const wb_type_bases *types; /* what its types are derived from */
    size_t type_count;
    int64_t concurrency;      /* default: the number of CPUs, at least 2 */
    int32_t transaction_mode; /* WB_MODE_x */
    int64_t batch_max;
    int64_t batch_time;
    int64_t body_max;
    int64_t shutdown_timeout;
    int64_t slow_handler;       /* 0: no line */
    int64_t handler_time_limit; /* as set; 0: none. wb_endpoint_create() takes handler_timeout where none was set */
    int64_t handler_timeout;    /* 0: none */
    int32_t on_endpoint_failure; /* WB_ON_FAILURE_x */
    int32_t start;               /* WB_START_x */
    int32_t send_only;

    wb_plugin_choice transport;
    wb_plugin_choice persistence;
    wb_plugin_choice observer;

    struct {
        int32_t enabled;
        int64_t retention;
        int64_t cleanup_interval;
        int64_t sweep_after;
        const wb_option_list *by; /* as written; NULL: nothing is */
        int32_t by_id;            /* messages that came before are known by their ids */
        int32_t by_position;      /* and by their positions */
        wb_plugin_choice store;   /* where ids are kept when they are done with; none: in the outbox */
    } outbox;

    struct {
        int64_t immediate_retries;
        int64_t delayed_retries;
        int64_t delay_increment;
        int64_t delay_jitter; /* percent */
        int64_t rate_limit_after;
        int64_t rate_limit_wait;
        int32_t on_failure;   /* WB_ON_MESSAGE_FAILURE_x (core/recover/recoverability.h) */
        const char *error_queue;
        const wb_type_policy *types; /* what is different for some types */
        const wb_conf_origin *types_at;
        size_t type_count;
    } recoverability;

    struct {
        int32_t by; /* WB_DELAYS_BY_x, once read; what the file asks for if its origin is set */
        int64_t number_of_retries;
        int64_t store_breaker; /* how long storing may fail before its circuit breaker opens */
        int64_t fetch_breaker;
        int64_t dispatch_breaker;
        int64_t failures_per_second; /* so many failed messages are seen to in a second, at most */
        int32_t on_circuit_open;     /* WB_ON_CIRCUIT_OPEN_x */
    } delayed_delivery;

    struct {
        const char *queue; /* NULL: nothing is audited */
    } audit;

    struct {
        int32_t mode; /* WB_SESSION_x */
        const char *processor_endpoint; /* NULL: the endpoint itself */
        int64_t maximum_commit_duration;
        int64_t commit_delay_increment;
        int64_t connections;
        wb_conf_origin at; /* of the group, is_set = 0 where there is none */
    } session;

    struct {
        const wb_option_list *from; /* error queues; NULL or empty: it is none that keeps failures, or has errors */
        int64_t retention;
        int64_t compress_over; /* larger bodies are kept compressed; 0: none is */
        wb_conf_origin at; /* of the group, is_set = 0 where there is none */
    } failures;

    /* Where each option was set; use WB_CONFIG_ORIGIN. */
    const wb_conf_origin *origins[WB_SECTION_COUNT]; /* those of the file have none */
    const wb_option_list *handler_list;
    const wb_option_list *commands; /* types of handlers that are not subscribed to; may be NULL */
    const wb_option_map *setting_map; /* as read; NULL: there is none */
    const wb_setting_entry *settings; /* the same, for handler modules */
    size_t setting_count;
} wb_endpoint_config;

/** Where the process answers by HTTP (core/http). */
typedef struct wb_http_config {
    const char *listen; /* as written; NULL: nowhere */
    const char *tls_cert_file, *tls_key_file; /* absolute; NULL: no TLS */
    const char *token; /* who asks has to know it; NULL: nobody has to */
    const char *certificate, *key; /* what is in those files */
    wb_conf_origin at;
} wb_http_config;

/** What the same listener shows to people (core/console). */
typedef struct wb_console_config {
    int32_t write;     /* they may change something */
    wb_conf_origin at; /* of the group, is_set = 0 where there is none */
} wb_console_config;

typedef struct wb_config {
    const char *path;
    wb_endpoint_config *endpoints;
    size_t endpoint_count;
    /** Directories with plugins besides the installed one, absolute or relative to the
     *  working directory. */
    const char *const *plugin_path;
    size_t plugin_path_count;
    int32_t log_level; /* WB_LOG_x */
    int32_t log_format; /* WB_LOG_TEXT or WB_LOG_JSON (core/base/log_line.h) */
    const char *log_file; /* absolute; NULL: standard error */
    wb_conf_origin log_file_at;
    wb_http_config http;
    wb_console_config console;

    /* Owned by the configuration and by those who read plugin options into it. */
    wb_arena arena;
    wb_secrets secrets;
    const wb_option_list *plugin_path_list;
} wb_config;

/** Read a file. All problems of the file are added to `problems`, warnings too.
 *  @return the configuration, also when it has errors (problems->error_count and
 *  has_errors say so), so that plugins can add theirs; NULL when the file cannot be read
 *  or its syntax is wrong. Free it with wb_config_free(). */
wb_config *wb_config_load(const char *path, wb_problems *problems);

/** Wipes secrets and frees everything that was read from the file. NULL is allowed. */
void wb_config_free(wb_config *config);

/** The endpoint of that name, or NULL. */
const wb_endpoint_config *wb_config_endpoint(const wb_config *config, const char *name);

/** The endpoint that has a queue of that name for its failed messages (a type's, too) or its audit copies: no endpoint is
 *  called so. NULL: none has. */
const wb_endpoint_config *wb_config_user_of(const wb_config *config, const char *queue);

/** The queue that it receives from: its own, or the error queue whose messages it keeps, the first of several. */
const char *wb_config_queue(const wb_endpoint_config *endpoint);

/** The error queues whose messages it keeps as well. @return how many; *ret_queues is the configuration's, or NULL. */
size_t wb_config_further_queues(const wb_endpoint_config *endpoint, const char *const **ret_queues);

/** Whether an endpoint has a use for the queue: it receives from it, or it is for its failed messages (a type's, too), or its audit
 *  copies. */
int wb_config_uses(const wb_endpoint_config *endpoint, const char *queue);

/** Where an option of an endpoint was set; is_set = 0 and the place of its group when the
 *  default applies. `WB_CONFIG_ORIGIN(endpoint, outbox.enabled)` */
#define WB_CONFIG_ORIGIN(endpoint, field)                                                          \
    wb_config_origin((endpoint), offsetof(wb_endpoint_config, field))
wb_conf_origin wb_config_origin(const wb_endpoint_config *endpoint, size_t offset);

/** A table of options, for parsing and for documentation. */
typedef struct wb_config_section {
    const char *name; /* the group's name: "", "endpoints", "outbox", "recoverability", "audit", "session", "failures" */
    const char *summary;
    const wb_option *options;
    size_t option_count;
} wb_config_section;

/** WB_SECTION_COUNT tables. Their offsets are in wb_config for WB_SECTION_TOP,
 *  WB_SECTION_HTTP and WB_SECTION_CONSOLE, otherwise in wb_endpoint_config. */
extern const wb_config_section wb_config_sections[WB_SECTION_COUNT];

#endif

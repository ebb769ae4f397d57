/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-client.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugins/common/thread.h"

#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)
/* One question to a broker; in between we look whether it is of any use. */
#define ASK_STEP 250

int wb_kafka_until(const wb_transport *transport, int64_t deadline)
{
    int64_t left = (deadline - transport->host->now() + MILLISECOND - 1) / MILLISECOND;
    if (left < 0)
        return 0;
    return left < INT_MAX ? (int)left : INT_MAX;
}

void wb_kafka_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

struct timespec wb_kafka_condition_time(int milliseconds)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t nanoseconds = at.tv_nsec + milliseconds * MILLISECOND;
    at.tv_sec += (time_t)(nanoseconds / SECOND);
    at.tv_nsec = (long)(nanoseconds % SECOND);
    return at;
}

int wb_kafka_name_take(wb_transport *transport, char ret_name[WB_KAFKA_NAME_SIZE],
                       wb_kafka_failure *failure)
{
    int slot = wb_kafka_identity_take(&transport->identity, transport->endpoint->name,
                                      transport->config->instance, ret_name);
    if (slot < 0)
        (void)wb_kafka_failure_set(failure, WB_RETRY, WB_CAUSE_OTHER, 0,
                                   "could not find a free name for the session: set the option "
                                   "instance");
    return slot;
}

/* ---- what librdkafka says -------------------------------------------------------- */

/* A broker that cannot be reached is reported where somebody waits for it, once; so is a client that
 * lost its place in the group or cannot go on. What librdkafka says of it, at each of its tries, is
 * for those who want to know more. */
static int is_said_elsewhere(const char *facility)
{
    static const char *const facilities[] = { "FAIL", "GETPID", "REQTMOUT", "SESSTMOUT", "FATAL",
                                              "CONFWARN" /* of properties of the other kind of client */ };
    for (size_t i = 0; i < sizeof facilities / sizeof facilities[0]; i++)
        if (strcmp(facility, facilities[i]) == 0)
            return 1;
    return 0;
}

static int level_of(int syslog_level, const char *facility)
{
    if (is_said_elsewhere(facility))
        return WB_LOG_DEBUG;
    if (syslog_level <= 2)
        return WB_LOG_ERROR;
    return syslog_level <= 5 ? WB_LOG_INFO : WB_LOG_DEBUG;
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    wb_kafka_client *client = rd_kafka_opaque(rk);
    if (!client)
        return;
    (void)pthread_mutex_lock(&client->lock);
    if (client->host) {
        wb_field fields[] = { { "facility", facility }, { "text", text } };
        client->host->log(client->host, level_of(level, facility), "librdkafka", fields, 2);
    }
    (void)pthread_mutex_unlock(&client->lock);
}

/* By its text alone: the code is that of any damaged answer. */
static void note_oversize(wb_kafka_client *client, const char *reason)
{
    const char *at = strstr(reason, "Invalid response size ");
    if (at && strstr(at, "receive.message.max.bytes"))
        (void)sscanf(at, "Invalid response size %" SCNd64 " (0..%" SCNd64, &client->oversize,
                     &client->oversize_limit);
}

int64_t wb_kafka_client_take_oversize(wb_kafka_client *client, int64_t *ret_limit)
{
    (void)pthread_mutex_lock(&client->lock);
    int64_t size = client->oversize;
    *ret_limit = client->oversize_limit;
    client->oversize = 0;
    (void)pthread_mutex_unlock(&client->lock);
    return size;
}

/* @locality whoever polls the client */
static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
    wb_kafka_client *client = opaque;
    (void)rk;
    (void)pthread_mutex_lock(&client->lock);
    note_oversize(client, reason);
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
        client->all_down = 1;
    else
        client->last_code = code;
    if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || !client->last_text[0])
        (void)snprintf(client->last_text, sizeof client->last_text, "%s", reason);
    (void)pthread_mutex_unlock(&client->lock);
}

int wb_kafka_client_failure(wb_kafka_client *client, rd_kafka_resp_err_t code, const char *doing,
                            wb_kafka_failure *failure)
{
    (void)pthread_mutex_lock(&client->lock);
    if (client->last_code)
        code = client->last_code;
    int result = wb_kafka_failure_map(failure, code, doing, client->last_text);
    (void)pthread_mutex_unlock(&client->lock);
    return result;
}

/* ---- life ------------------------------------------------------------------------ */

static wb_kafka_client *allocate(wb_transport *transport, void *owner)
{
    wb_kafka_client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->transport = transport;
    client->host = transport->host;
    client->owner = owner;
    (void)pthread_mutex_init(&client->lock, NULL);
    return client;
}

static void release(wb_kafka_client *client)
{
    (void)pthread_mutex_destroy(&client->lock);
    free(client);
}

/* Its threads inherit the mask: signals belong to the program's. */
static rd_kafka_t *start_quietly(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *text,
                                 size_t size)
{
    sigset_t before;
    wb_common_signals_block(&before);
    rd_kafka_t *rk = rd_kafka_new(type, conf, text, size);
    wb_common_signals_restore(&before);
    return rk;
}

wb_kafka_client *wb_kafka_client_start(wb_transport *transport, rd_kafka_type_t type,
                                       rd_kafka_conf_t *conf, void *owner, wb_kafka_failure *failure)
{
    char text[400];
    wb_kafka_client *client = allocate(transport, owner);
    if (!client) {
        rd_kafka_conf_destroy(conf);
        (void)wb_kafka_failure_set(failure, WB_RETRY, WB_CAUSE_OTHER, ENOMEM, "out of memory");
        return NULL;
    }
    rd_kafka_conf_set_opaque(conf, client);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
    client->rk = start_quietly(type, conf, text, sizeof text);
    if (client->rk)
        return client;
    rd_kafka_conf_destroy(conf);
    (void)wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_CONFIG, rd_kafka_last_error(),
                               "librdkafka refuses its configuration: %s", text);
    release(client);
    return NULL;
}

static void log_nothing(const rd_kafka_t *rk, int level, const char *facility, const char *line)
{
    (void)rk;
    (void)level;
    (void)facility;
    (void)line;
}

int wb_kafka_client_try(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *text, size_t size)
{
    rd_kafka_conf_set_log_cb(conf, log_nothing);
    rd_kafka_t *rk = NULL;
    if (rd_kafka_conf_set(conf, "bootstrap.servers", "", text, size) == RD_KAFKA_CONF_OK)
        rk = start_quietly(type, conf, text, size);
    if (rk)
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    else
        rd_kafka_conf_destroy(conf);
    return rk != NULL;
}

static void *destroy_main(void *argument)
{
    /* A consumer was closed before, within a deadline; closing here has none. */
    rd_kafka_destroy_flags(((wb_kafka_client *)argument)->rk,
                           RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return NULL;
}

static struct timespec wall_in(int64_t duration)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    int64_t nanoseconds = at.tv_nsec + duration;
    at.tv_sec += (time_t)(nanoseconds / SECOND);
    at.tv_nsec = (long)(nanoseconds % SECOND);
    return at;
}

static void abandon(wb_kafka_client *client, pthread_t thread)
{
    const wb_host *host = client->host;
    (void)pthread_detach(thread);
    (void)pthread_mutex_lock(&client->lock);
    client->host = NULL;
    (void)pthread_mutex_unlock(&client->lock);
    host->log(host, WB_LOG_WARNING,
              "a client of the broker does not end in time: it is left alone, with its memory", NULL,
              0);
}

void wb_kafka_client_end(wb_kafka_client *client)
{
    pthread_t thread;
    if (!client)
        return;
    struct timespec latest = wall_in(client->transport->config->connect_timeout);
    if (wb_common_thread_start(&thread, 0, destroy_main, client) != 0)
        (void)destroy_main(client);
    else if (pthread_timedjoin_np(thread, NULL, &latest) != 0) {
        abandon(client, thread);
        return;
    }
    release(client);
}

/* ---- asking ---------------------------------------------------------------------- */

/* What others who ask were told is still so. */
static void begin_to_ask(wb_kafka_client *client)
{
    (void)pthread_mutex_lock(&client->lock);
    if (client->asking++) {
        (void)pthread_mutex_unlock(&client->lock);
        return;
    }
    client->last_code = RD_KAFKA_RESP_ERR_NO_ERROR;
    client->last_text[0] = '\0';
    client->all_down = 0;
    (void)pthread_mutex_unlock(&client->lock);
}

static void end_asking(wb_kafka_client *client)
{
    (void)pthread_mutex_lock(&client->lock);
    client->asking--;
    (void)pthread_mutex_unlock(&client->lock);
}

/* Refused by the host or by the login: waiting does not help. */
static int is_hopeless(wb_kafka_client *client)
{
    (void)pthread_mutex_lock(&client->lock);
    int answer = client->all_down || wb_kafka_map_is_refusal(client->last_code, client->last_text);
    (void)pthread_mutex_unlock(&client->lock);
    return answer;
}

/* @locality the session's worker, before any other thread polls the client, or a producer's */
int wb_kafka_client_ask(wb_kafka_client *client, const char *topic, int64_t deadline,
                        const struct rd_kafka_metadata **ret_metadata, wb_kafka_failure *failure)
{
    rd_kafka_topic_t *handle = topic ? rd_kafka_topic_new(client->rk, topic, NULL) : NULL;
    rd_kafka_resp_err_t code;
    int left;
    begin_to_ask(client);
    /* An answer that comes later than it is waited for is lost, and a broker may be far away. */
    for (int step = ASK_STEP;; step *= 2) {
        left = wb_kafka_until(client->transport, deadline);
        code = rd_kafka_metadata(client->rk, 0, handle, ret_metadata,
                                 left < step ? left : step);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            break;
        (void)rd_kafka_poll(client->rk, 0);
        if (left == 0 || is_hopeless(client))
            break;
    }
    end_asking(client);
    if (handle)
        rd_kafka_topic_destroy(handle);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return WB_OK;
    return wb_kafka_client_failure(client, code, "reach the brokers", failure);
}

void wb_kafka_failure_map_fence(wb_kafka_failure *failure, wb_transport *transport, int slot,
                                rd_kafka_resp_err_t code, const char *doing)
{
    if (wb_kafka_map_is_fenced(code) &&
        !wb_kafka_identity_note_fence(&transport->identity, slot, transport->host->now()))
        (void)wb_kafka_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, code,
                                   "could not %s: the session lost its place; it was silent for too "
                                   "long, or another process uses the same instance name (%s)",
                                   doing, rd_kafka_err2str(code));
}

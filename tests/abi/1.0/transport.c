/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport of version 1.0: a queue in memory that holds messages from the start, and says what is sent.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <waybill/sys/expiry.h>
#include <waybill/sys/transport.h>
#include <waybill/sys/types.h>

#include "said.h"

#define MESSAGES_MAX 200
#define SECOND INT64_C(1000000000)

/* ---- options: one of each type ---- */

typedef struct {
    const char *text;
    int64_t messages;
    int64_t pause;
    int64_t room;
    int32_t flag;
    int32_t level;
    const wb_option_list *list;
    const wb_option_map *map;
} config_of_memory;

static const char *const levels[] = { "low", "high", NULL };

#define OPTION(is_called, of_type, field, default_is)                                              \
    GROWN.name = (is_called), .type = (of_type), .offset = offsetof(config_of_memory, field),      \
    .default_text = (default_is), .since = "1.0", .summary = "for the test"

static const wb_option options[] = {
    { OPTION("text", WB_OPTION_STRING, text, "plain") },
    { OPTION("messages", WB_OPTION_INTEGER, messages, "0"), .minimum = 0, .maximum = MESSAGES_MAX },
    { OPTION("pause", WB_OPTION_DURATION, pause, "10ms") },
    { OPTION("room", WB_OPTION_SIZE, room, "1KiB") },
    { OPTION("flag", WB_OPTION_BOOLEAN, flag, "true") },
    { OPTION("level", WB_OPTION_CHOICE, level, "high"), .choices = levels },
    { OPTION("list", WB_OPTION_LIST, list, "[\"a\", \"b\"]") },
    { OPTION("map", WB_OPTION_MAP, map, "{ c = \"d\"; }") },
};

static void say_config(const config_of_memory *config)
{
    say("config %s %lld %lld %lld %d %d %s,%s %s=%s", config->text, (long long)config->messages, (long long)config->pause,
        (long long)config->room, config->flag, config->level, config->list->values[0], config->list->values[1],
        config->map->names[0], config->map->values[0]);
}

/* ---- the queue ---- */

typedef struct {
    wb_incoming incoming;
    wb_header headers[2];
    char id[16], number[16], body[32];
    const wb_transport_session *holder;
    int is_done;
} entry;

struct wb_transport {
    const wb_host *host;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    entry entries[MESSAGES_MAX];
    size_t count;
    size_t expired;
};

struct wb_transport_session {
    wb_transport *transport;
    int is_interrupted;
};

static const char *type_of(size_t number)
{
    return number % 8 == 7 ? "Abi.Unwanted" : number % 4 == 3 ? "Abi.Together" : "Abi.Work";
}

static void fill(entry *e, size_t number)
{
    const int id_size = snprintf(e->id, sizeof e->id, "m-%zu", number);
    const int number_size = snprintf(e->number, sizeof e->number, "%zu", number);
    const int body_size = snprintf(e->body, sizeof e->body, "body-%zu", number);
    const char *type = type_of(number);
    e->headers[0] = (wb_header){ "NServiceBus.EnclosedMessageTypes", type, 32, strlen(type) };
    e->headers[1] = (wb_header){ "number", e->number, 6, (size_t)number_size };
    e->incoming = (wb_incoming){ GROWN.struct_size = sizeof(wb_incoming), .id = e->id, .id_size = (size_t)id_size,
                                 .headers = e->headers, .header_count = 2, .body = e->body,
                                 .body_size = (size_t)body_size };
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config, wb_transport **ret_transport,
                  wb_error *error)
{
    const config_of_memory *values = config;
    const wb_field fields[] = { { "mode", "memory" }, { "queue", endpoint->name } };
    pthread_condattr_t monotonic;
    wb_transport *transport = calloc(1, sizeof *transport);
    if (!transport)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, ENOMEM, "out of memory");
    transport->host = host;
    transport->count = (size_t)values->messages;
    transport->expired = 3;
    for (size_t i = 0; i < transport->count; i++)
        fill(&transport->entries[i], i);
    (void)pthread_mutex_init(&transport->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&transport->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    SEES(wb_host, host);
    SEES(wb_endpoint_info, endpoint);
    say_config(values);
    host->log(host, WB_LOG_INFO, "a transport of version 1.0", fields, 2);
    *ret_transport = transport;
    return WB_OK;
}

static void destroy(wb_transport *transport)
{
    (void)pthread_cond_destroy(&transport->changed);
    (void)pthread_mutex_destroy(&transport->lock);
    free(transport);
}

static int prepare(wb_transport *transport, wb_error *error)
{
    (void)transport, (void)error;
    return WB_OK;
}

static int limits(wb_transport *transport, wb_transport_limits *limits, wb_error *error)
{
    (void)transport, (void)error;
    SEES(wb_transport_limits, limits);
    limits->delivery_limit = 0;
    return WB_OK;
}

static int open_session(wb_transport *transport, uint32_t purpose, uint32_t prefetch, wb_transport_session **ret_session,
                        wb_error *error)
{
    wb_transport_session *session = calloc(1, sizeof *session);
    (void)purpose, (void)prefetch;
    if (!session)
        return transport->host->fail(transport->host, error, WB_RETRY, WB_CAUSE_SERVER, ENOMEM, "out of memory");
    session->transport = transport;
    *ret_session = session;
    return WB_OK;
}

static void release(wb_transport *transport, const wb_transport_session *session, const wb_incoming *incoming)
{
    for (size_t i = 0; i < transport->count; i++) {
        entry *e = &transport->entries[i];
        if (e->holder != session || (incoming && incoming != &e->incoming))
            continue;
        e->holder = NULL;
        e->incoming.delivery_count++;
    }
    (void)pthread_cond_broadcast(&transport->changed);
}

static void close_session(wb_transport_session *session)
{
    (void)pthread_mutex_lock(&session->transport->lock);
    release(session->transport, session, NULL);
    (void)pthread_mutex_unlock(&session->transport->lock);
    free(session);
}

static size_t take(wb_transport_session *session, const wb_incoming **messages, size_t max)
{
    size_t count = 0;
    wb_transport *transport = session->transport;
    for (size_t i = 0; i < transport->count && count < max; i++) {
        entry *e = &transport->entries[i];
        if (e->holder || e->is_done)
            continue;
        e->holder = session;
        messages[count++] = &e->incoming;
    }
    return count;
}

/* @return 0 at the deadline. */
static int wait_until(wb_transport *transport, int64_t deadline)
{
    struct timespec until;
    int64_t left = deadline - transport->host->now();
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t at = until.tv_sec * SECOND + until.tv_nsec + (left > 0 ? left : 0);
    until.tv_sec = (time_t)(at / SECOND);
    until.tv_nsec = (long)(at % SECOND);
    return pthread_cond_timedwait(&transport->changed, &transport->lock, &until) == 0;
}

/* What has expired is told once. */
static void tell_expired(wb_transport *transport)
{
    const wb_host *host = transport->host;
    if (transport->expired && WB_HAS(host, wb_host, expired))
        host->expired(host, transport->expired);
    transport->expired = 0;
}

static int receive(wb_transport_session *session, int64_t deadline, const wb_incoming **ret_messages, size_t max,
                   size_t *ret_count, wb_error *error)
{
    wb_transport *transport = session->transport;
    (void)error;
    (void)pthread_mutex_lock(&transport->lock);
    tell_expired(transport);
    while ((*ret_count = take(session, ret_messages, max)) == 0 && !session->is_interrupted &&
           wait_until(transport, deadline))
        continue;
    session->is_interrupted = 0;
    (void)pthread_mutex_unlock(&transport->lock);
    return WB_OK;
}

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count, wb_error *error)
{
    wb_transport *transport = session->transport;
    (void)error;
    (void)pthread_mutex_lock(&transport->lock);
    for (size_t i = 0; i < transport->count; i++) {
        for (size_t j = 0; j < count; j++)
            if (messages[j] == &transport->entries[i].incoming)
                transport->entries[i].is_done = 1;
    }
    (void)pthread_mutex_unlock(&transport->lock);
    for (size_t j = 0; j < count; j++)
        say("acknowledged %s", messages[j]->id);
    return WB_OK;
}

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count, wb_error *error)
{
    (void)error;
    (void)pthread_mutex_lock(&session->transport->lock);
    for (size_t i = 0; i < count; i++)
        release(session->transport, session, messages[i]);
    (void)pthread_mutex_unlock(&session->transport->lock);
    return WB_OK;
}

static int send_all(wb_transport_session *session, wb_operation *const *operations, size_t count, int64_t deadline,
                    wb_error *error)
{
    (void)session, (void)deadline, (void)error;
    for (size_t i = 0; i < count; i++) {
        wb_operation *operation = operations[i];
        const char *types = "";
        for (size_t j = 0; j < operation->header_count; j++)
            if (strcmp(operation->headers[j].name, "NServiceBus.EnclosedMessageTypes") == 0)
                types = operation->headers[j].value;
        SEES(wb_operation, operation);
        say("sent %s to %s with %.*s", types, operation->destination, (int)operation->body_size,
            (const char *)operation->body);
        operation->result = WB_OK;
    }
    return WB_OK;
}

static void interrupt_session(wb_transport_session *session)
{
    (void)pthread_mutex_lock(&session->transport->lock);
    session->is_interrupted = 1;
    (void)pthread_cond_broadcast(&session->transport->changed);
    (void)pthread_mutex_unlock(&session->transport->lock);
}

static const wb_transport_ops operations = {
    GROWN.struct_size = sizeof operations,
    .create = create,
    .destroy = destroy,
    .install = prepare,
    .verify = prepare,
    .open = open_session,
    .close = close_session,
    .receive = receive,
    .acknowledge = acknowledge,
    .give_back = give_back,
    .send = send_all,
    .interrupt = interrupt_session,
    .limits = limits,
};

static const wb_plugin descriptor = {
    GROWN.struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .kind = WB_PLUGIN_TRANSPORT,
    .name = "memory",
    .version = "1.0",
    .summary = "a queue in memory",
    .capabilities = WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_PUBLISH | WB_CAP_EXPIRY |
                    WB_CAP_DELIVERY_COUNT,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .config_size = sizeof(config_of_memory),
    .ops = &operations,
};

WB_PLUGIN(memory, descriptor)

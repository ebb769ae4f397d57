/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-consumer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plugins/transport/kafka/kafka-conf.h"

#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)
/* The workers' longest time to finish what they have in hand when partitions are taken away;
 * half of max.poll.interval.ms where that is less. */
#define DRAIN_MAX (30 * SECOND)
/* Longest time to commit and leave when the session has failed. */
#define FAILED_CLOSE_MAX (3 * SECOND)

/* ---- opening --------------------------------------------------------------------- */

static int init(wb_kafka_consumer *consumer, wb_transport *transport, wb_kafka_failure *failure)
{
    consumer->transport = transport;
    consumer->slot = -1;
    (void)pthread_mutex_init(&consumer->lock, NULL);
    wb_kafka_condition_init(&consumer->settled);
    wb_kafka_condition_init(&consumer->answered);
    consumer->poll_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (consumer->poll_wake < 0)
        return wb_kafka_failure_set(failure, WB_RETRY, WB_CAUSE_OTHER, errno,
                                    "could not make an event descriptor: %s", strerror(errno));
    return WB_OK;
}

static int take_name(wb_kafka_consumer *consumer, char ret_name[WB_KAFKA_NAME_SIZE],
                     wb_kafka_failure *failure)
{
    consumer->slot = wb_kafka_name_take(consumer->transport, ret_name, failure);
    consumer->owns_slot = consumer->slot >= 0;
    return consumer->owns_slot ? WB_OK : failure->result;
}

static int start_client(wb_kafka_consumer *consumer, const char *name, wb_kafka_failure *failure)
{
    char member[WB_KAFKA_NAME_SIZE + 16];
    /* Who comes back under the name of a member gets what that one had, although it may have
     * handlers of other types now: with other topics it is another member. */
    (void)snprintf(member, sizeof member, "%s.%08x", name, wb_kafka_topics_hash(consumer->transport));
    rd_kafka_conf_t *conf =
        wb_kafka_conf_make(consumer->transport, WB_KAFKA_ROLE_CONSUMER, member, NULL);
    if (!conf)
        return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_CONFIG, 0,
                                    "librdkafka does not accept the configuration of a consumer");
    int64_t half = wb_kafka_conf_number(conf, "max.poll.interval.ms", 300000) * MILLISECOND / 2;
    consumer->drain_max = half < DRAIN_MAX ? half : DRAIN_MAX;
    rd_kafka_conf_set_rebalance_cb(conf, wb_kafka_on_rebalance);
    consumer->client =
        wb_kafka_client_start(consumer->transport, RD_KAFKA_CONSUMER, conf, consumer, failure);
    return consumer->client ? WB_OK : failure->result;
}

/* Queues tell when they are no longer empty by writing to a descriptor. */
static int make_queues(wb_kafka_consumer *consumer, wb_kafka_failure *failure)
{
    static const uint64_t one = 1;
    rd_kafka_t *rk = consumer->client->rk;
    const wb_transport *transport = consumer->transport;
    size_t lanes = transport->endpoint->mode == WB_MODE_SENDS_ATOMIC ? 1 : wb_kafka_conf_workers(transport);
    (void)rd_kafka_poll_set_consumer(rk);
    consumer->commits = rd_kafka_queue_new(rk);
    consumer->events = rd_kafka_queue_get_consumer(rk);
    rd_kafka_queue_io_event_enable(consumer->commits, consumer->poll_wake, &one, sizeof one);
    rd_kafka_queue_io_event_enable(consumer->events, consumer->poll_wake, &one, sizeof one);
    if (wb_kafka_lanes_make(consumer, lanes))
        return WB_OK;
    return wb_kafka_failure_set(failure, WB_RETRY, WB_CAUSE_OTHER, ENOMEM, "out of memory");
}

static int refuse_topic(const char *topic, rd_kafka_resp_err_t code, wb_kafka_failure *failure)
{
    const char *remedy = wb_kafka_map_remedy(code, WB_KAFKA_READ);
    return wb_kafka_failure_set(failure, WB_NOT_CONNECTED, wb_kafka_map_cause(code), code,
                                "topic \"%s\" cannot be read: %s%s", topic, rd_kafka_err2str(code),
                                *remedy ? remedy : "; run waybill install");
}

/* Subscribing to what is not there is no error to librdkafka; it would be silent. */
static int check_topics(wb_kafka_consumer *consumer, const rd_kafka_topic_partition_list_t *topics,
                        wb_kafka_failure *failure)
{
    const wb_transport *transport = consumer->transport;
    int64_t deadline = transport->host->now() + transport->config->connect_timeout;
    rd_kafka_resp_err_t code;
    int result = WB_OK;
    for (int i = 0; i < topics->cnt && result == WB_OK; i++) {
        const char *topic = topics->elems[i].topic;
        result = wb_kafka_topic_find(consumer->client, topic, deadline, &code, NULL, NULL, failure);
        if (result == WB_REJECT)
            return refuse_topic(topic, code, failure);
    }
    return result;
}

static int join_group(wb_kafka_consumer *consumer, wb_kafka_failure *failure)
{
    rd_kafka_topic_partition_list_t *topics = wb_kafka_topics_read(consumer->transport);
    int result = check_topics(consumer, topics, failure);
    if (result == WB_OK) {
        rd_kafka_resp_err_t code = rd_kafka_subscribe(consumer->client->rk, topics);
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
            result = wb_kafka_failure_map(failure, code, "subscribe", NULL);
    }
    rd_kafka_topic_partition_list_destroy(topics);
    int failed = result == WB_OK ? wb_kafka_poll_start(consumer) : 0;
    if (failed)
        result = wb_kafka_failure_set(failure, WB_RETRY, WB_CAUSE_OTHER, failed,
                                      "could not start a thread: %s", strerror(failed));
    return result;
}

wb_kafka_consumer *wb_kafka_consumer_open(wb_transport *transport, int slot, const char *name,
                                          wb_kafka_failure *failure)
{
    char own[WB_KAFKA_NAME_SIZE];
    wb_kafka_consumer *consumer = calloc(1, sizeof *consumer);
    if (!consumer) {
        (void)wb_kafka_failure_set(failure, WB_RETRY, WB_CAUSE_OTHER, ENOMEM, "out of memory");
        return NULL;
    }
    int result = init(consumer, transport, failure);
    if (result == WB_OK && !name)
        result = take_name(consumer, own, failure);
    else
        consumer->slot = slot;
    if (result == WB_OK)
        result = start_client(consumer, name ? name : own, failure);
    if (result == WB_OK)
        result = make_queues(consumer, failure);
    if (result == WB_OK)
        result = join_group(consumer, failure);
    if (result == WB_OK)
        return consumer;
    wb_kafka_consumer_close(consumer);
    return NULL;
}

/* ---- closing --------------------------------------------------------------------- */

static void announce_close(wb_kafka_consumer *consumer)
{
    (void)pthread_mutex_lock(&consumer->lock);
    consumer->closing = 1;
    (void)pthread_cond_broadcast(&consumer->settled);
    wb_kafka_receivers_wake(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
}

/* What is in hand and not acknowledged is given back by not committing it. Every object of
 * the client must be gone before it can end. */
static void let_go(wb_kafka_consumer *consumer, int64_t deadline)
{
    (void)pthread_mutex_lock(&consumer->lock);
    (void)wb_kafka_commit_flush(consumer, deadline, 1);
    wb_kafka_messages_drop(consumer, 1);
    wb_kafka_partitions_lose(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
}

static int is_member(rd_kafka_t *rk)
{
    char *id = rd_kafka_memberid(rk);
    int answer = id && *id;
    if (id)
        rd_kafka_mem_free(rk, id);
    return answer;
}

/* A member with a name does not leave when it is closed. Where the operator gave the name, that is
 * how it should be: the process comes back, and nobody else's partitions move meanwhile. */
static int keeps_its_place(const wb_kafka_consumer *consumer)
{
    return consumer->transport->config->instance != NULL;
}

/* With a name of ours the partitions should not wait for the session to time out.
 * Unsubscribing leaves, before closing, and the member's id is gone when it did. */
static void unsubscribe(wb_kafka_consumer *consumer, int64_t deadline)
{
    rd_kafka_t *rk = consumer->client->rk;
    if (rd_kafka_fatal_error(rk, NULL, 0) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    (void)rd_kafka_unsubscribe(rk);
    while (is_member(rk) && wb_kafka_until(consumer->transport, deadline)) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 10);
        if (message)
            rd_kafka_message_destroy(message);
    }
}

/* rd_kafka_consumer_close() would wait without limit for a coordinator that is gone. */
static void leave_group(wb_kafka_consumer *consumer, int64_t deadline)
{
    rd_kafka_t *rk = consumer->client->rk;
    rd_kafka_queue_t *last = rd_kafka_queue_new(rk);
    rd_kafka_error_t *failed = rd_kafka_consumer_close_queue(rk, last);
    while (!failed && !rd_kafka_consumer_closed(rk) &&
           wb_kafka_until(consumer->transport, deadline))
        (void)rd_kafka_queue_poll_callback(last, 50);
    if (failed)
        rd_kafka_error_destroy(failed);
    rd_kafka_queue_destroy(last);
}

/* Nobody may write to a descriptor that is closed, and maybe somebody else's. */
static void destroy_queues(wb_kafka_consumer *consumer)
{
    wb_kafka_lanes_free(consumer);
    rd_kafka_queue_io_event_enable(consumer->commits, -1, NULL, 0);
    rd_kafka_queue_io_event_enable(consumer->events, -1, NULL, 0);
    rd_kafka_queue_destroy(consumer->commits);
    rd_kafka_queue_destroy(consumer->events);
}

/* One that has failed is closed to be opened again, and whom it waits for may be gone. What
 * is not committed, or not left, comes again or later. */
static int64_t close_deadline(const wb_kafka_consumer *consumer)
{
    const wb_transport *transport = consumer->transport;
    int64_t most = transport->config->connect_timeout;
    if (consumer->failure.result != WB_OK && most > FAILED_CLOSE_MAX)
        most = FAILED_CLOSE_MAX;
    return transport->host->now() + most;
}

/* It is no member any more, and nothing of it can be committed. Others may hold messages of it. */
static void leave(wb_kafka_consumer *consumer)
{
    int joined = consumer->running;
    announce_close(consumer);
    wb_kafka_poll_stop(consumer);
    int64_t deadline = close_deadline(consumer);
    let_go(consumer, deadline);
    if (joined) {
        if (!keeps_its_place(consumer))
            unsubscribe(consumer, deadline);
        leave_group(consumer, deadline);
    }
    consumer->has_left = 1;
    if (consumer->owns_slot)
        wb_kafka_identity_give_back(&consumer->transport->identity, consumer->slot);
    consumer->owns_slot = 0;
}

void wb_kafka_consumer_close(wb_kafka_consumer *consumer)
{
    if (consumer->commits && !consumer->has_left)
        leave(consumer);
    if (consumer->owns_slot)
        wb_kafka_identity_give_back(&consumer->transport->identity, consumer->slot);
    if (consumer->commits)
        destroy_queues(consumer);
    wb_kafka_client_end(consumer->client);
    if (consumer->poll_wake >= 0)
        (void)close(consumer->poll_wake);
    (void)pthread_cond_destroy(&consumer->settled);
    (void)pthread_cond_destroy(&consumer->answered);
    (void)pthread_mutex_destroy(&consumer->lock);
    free(consumer);
}

/* ---- the process's ---------------------------------------------------------------- */

static wb_kafka_consumer *of(wb_kafka_shared *thing)
{
    return (wb_kafka_consumer *)thing;
}

static wb_kafka_shared *share_open(wb_transport *transport, wb_kafka_failure *failure)
{
    wb_kafka_consumer *consumer = wb_kafka_consumer_open(transport, -1, NULL, failure);
    return consumer ? &consumer->shared : NULL;
}

static int share_is_usable(wb_kafka_shared *thing)
{
    wb_kafka_consumer *consumer = of(thing);
    (void)pthread_mutex_lock(&consumer->lock);
    int answer = consumer->failure.result == WB_OK;
    (void)pthread_mutex_unlock(&consumer->lock);
    return answer;
}

/* Before another comes under its name. */
static void share_retire(wb_kafka_shared *thing)
{
    leave(of(thing));
}

static void share_close(wb_kafka_shared *thing)
{
    wb_kafka_consumer_close(of(thing));
}

static const wb_kafka_share_kind kind = { share_open, share_is_usable, share_retire, share_close };

wb_kafka_consumer *wb_kafka_consumer_take(wb_transport *transport, wb_kafka_failure *failure)
{
    wb_kafka_shared *thing = wb_kafka_share_take(&transport->consumers, &kind, transport, failure);
    return thing ? of(thing) : NULL;
}

void wb_kafka_consumer_give_back(wb_kafka_consumer *consumer)
{
    wb_kafka_share_give_back(&consumer->transport->consumers, &kind, &consumer->shared);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The poll thread: as long as it polls, the group coordinator gives the partitions to
 * nobody else, however long a handler takes.
 */
#include "config.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "plugins/common/thread.h"
#include "plugins/transport/kafka/kafka-consumer.h"

/* A commit that failed is tried again after this time, and a turn is noticed. */
#define TICK 500

static void log_unreachable(wb_kafka_consumer *consumer)
{
    wb_transport *transport = consumer->transport;
    wb_kafka_client *client = consumer->client;
    char reason[sizeof client->last_text];
    (void)pthread_mutex_lock(&client->lock);
    int down = client->all_down;
    memcpy(reason, client->last_text, sizeof reason);
    client->all_down = 0;
    (void)pthread_mutex_unlock(&client->lock);
    if (!down || atomic_exchange(&transport->unreachable_logged, 1))
        return;
    wb_field fields[] = { { "reason", reason } };
    transport->host->log(transport->host, WB_LOG_WARNING,
                         "no broker can be reached: going on when one can", fields, 1);
}

/* @locality poll thread */
static void serve(wb_kafka_consumer *consumer)
{
    rd_kafka_message_t *message;
    /* Callbacks run in here. Messages come another way, so what is returned is an error. */
    while ((message = rd_kafka_consumer_poll(consumer->client->rk, 0))) {
        if (message->err)
            wb_kafka_consumer_note_error(consumer, message);
        rd_kafka_message_destroy(message);
    }
    log_unreachable(consumer);
    wb_kafka_consumer_follow_oversize(consumer);
    wb_kafka_consumer_follow_hunger(consumer);
    (void)pthread_mutex_lock(&consumer->lock);
    wb_kafka_consumer_follow_turns(consumer);
    wb_kafka_commit_serve(consumer);
    wb_kafka_commit_start(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
}

static void *poll_main(void *argument)
{
    wb_kafka_consumer *consumer = argument;
    struct pollfd wait = { .fd = consumer->poll_wake, .events = POLLIN };
    eventfd_t ignored;
    while (!atomic_load(&consumer->stop)) {
        (void)poll(&wait, 1, TICK);
        (void)eventfd_read(consumer->poll_wake, &ignored);
        serve(consumer);
    }
    return NULL;
}

int wb_kafka_poll_start(wb_kafka_consumer *consumer)
{
    int failed = wb_common_thread_start(&consumer->thread, 0, poll_main, consumer);
    consumer->running = !failed;
    return failed;
}

void wb_kafka_poll_stop(wb_kafka_consumer *consumer)
{
    if (!consumer->running)
        return;
    atomic_store(&consumer->stop, 1);
    (void)eventfd_write(consumer->poll_wake, 1);
    (void)pthread_join(consumer->thread, NULL);
    consumer->running = 0;
}

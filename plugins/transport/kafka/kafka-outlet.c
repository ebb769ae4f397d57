/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-outlet.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-send.h"

/* So often does who waits look by itself: reports may be served by somebody who does not wait. */
#define STEP 100

/* ---- life ------------------------------------------------------------------------ */

static int connect_brokers(wb_kafka_outlet *outlet, wb_kafka_failure *failure)
{
    const wb_transport *transport = outlet->transport;
    const struct rd_kafka_metadata *metadata;
    int result = wb_kafka_client_ask(outlet->client, NULL,
                                     transport->host->now() + transport->config->connect_timeout,
                                     &metadata, failure);
    if (result == WB_OK)
        rd_kafka_metadata_destroy(metadata);
    return result;
}

static int start(wb_kafka_outlet *outlet, const char *name, wb_kafka_failure *failure)
{
    rd_kafka_conf_t *conf =
        wb_kafka_conf_make(outlet->transport, WB_KAFKA_ROLE_PRODUCER, name, NULL);
    if (!conf)
        return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_CONFIG, 0,
                                    "librdkafka does not accept the configuration of a producer");
    rd_kafka_conf_set_dr_msg_cb(conf, wb_kafka_on_delivery);
    outlet->client =
        wb_kafka_client_start(outlet->transport, RD_KAFKA_PRODUCER, conf, outlet, failure);
    return outlet->client ? connect_brokers(outlet, failure) : failure->result;
}

wb_kafka_outlet *wb_kafka_outlet_open(wb_transport *transport, const char *name,
                                      wb_kafka_failure *failure)
{
    wb_kafka_outlet *outlet = calloc(1, sizeof *outlet);
    if (!outlet) {
        (void)wb_kafka_failure_set(failure, WB_RETRY, WB_CAUSE_OTHER, ENOMEM, "out of memory");
        return NULL;
    }
    outlet->transport = transport;
    (void)pthread_mutex_init(&outlet->lock, NULL);
    if (start(outlet, name, failure) == WB_OK)
        return outlet;
    wb_kafka_outlet_close(outlet);
    return NULL;
}

void wb_kafka_outlet_close(wb_kafka_outlet *outlet)
{
    if (!outlet)
        return;
    if (outlet->client)
        (void)rd_kafka_purge(outlet->client->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    wb_kafka_client_end(outlet->client);
    for (size_t i = 0; i < outlet->orphan_count; i++)
        free(outlet->orphans[i]);
    free(outlet->orphans);
    (void)pthread_mutex_destroy(&outlet->lock);
    free(outlet);
}

/* Out of memory: it is never freed. */
void wb_kafka_outlet_adopt(wb_kafka_outlet *outlet, void *orphan)
{
    (void)pthread_mutex_lock(&outlet->lock);
    void **orphans = realloc(outlet->orphans, (outlet->orphan_count + 1) * sizeof *orphans);
    if (orphans) {
        outlet->orphans = orphans;
        outlet->orphans[outlet->orphan_count++] = orphan;
    }
    (void)pthread_mutex_unlock(&outlet->lock);
}

/* ---- the process's ---------------------------------------------------------------- */

static wb_kafka_outlet *of(wb_kafka_shared *thing)
{
    return (wb_kafka_outlet *)thing;
}

static wb_kafka_shared *share_open(wb_transport *transport, wb_kafka_failure *failure)
{
    wb_kafka_outlet *outlet = wb_kafka_outlet_open(transport, NULL, failure);
    return outlet ? &outlet->shared : NULL;
}

int wb_kafka_outlet_is_usable(wb_kafka_outlet *outlet)
{
    (void)pthread_mutex_lock(&outlet->lock);
    int answer = !outlet->is_over;
    (void)pthread_mutex_unlock(&outlet->lock);
    return answer && rd_kafka_fatal_error(outlet->client->rk, NULL, 0) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

void wb_kafka_outlet_end(wb_kafka_outlet *outlet)
{
    (void)pthread_mutex_lock(&outlet->lock);
    outlet->is_over = 1;
    (void)pthread_mutex_unlock(&outlet->lock);
}

static int share_is_usable(wb_kafka_shared *thing)
{
    return wb_kafka_outlet_is_usable(of(thing));
}

/* What is on its way with it may yet arrive. */
static void share_retire(wb_kafka_shared *thing)
{
    (void)thing;
}

static void share_close(wb_kafka_shared *thing)
{
    wb_kafka_outlet_close(of(thing));
}

static const wb_kafka_share_kind kind = { share_open, share_is_usable, share_retire, share_close };

/* Whoever comes later finds out as well whether the brokers can be reached. */
wb_kafka_outlet *wb_kafka_outlet_take(wb_transport *transport, wb_kafka_failure *failure)
{
    wb_kafka_shared *thing = wb_kafka_share_take(&transport->outlets, &kind, transport, failure);
    if (!thing || connect_brokers(of(thing), failure) == WB_OK)
        return thing ? of(thing) : NULL;
    wb_kafka_share_give_back(&transport->outlets, &kind, thing);
    return NULL;
}

void wb_kafka_outlet_give_back(wb_kafka_outlet *outlet)
{
    wb_kafka_share_give_back(&outlet->transport->outlets, &kind, &outlet->shared);
}

/* ---- waiting --------------------------------------------------------------------- */

void wb_kafka_waiter_init(wb_kafka_waiter *waiter)
{
    wb_kafka_condition_init(&waiter->changed);
}

void wb_kafka_waiter_destroy(wb_kafka_waiter *waiter)
{
    (void)pthread_cond_destroy(&waiter->changed);
}

/* While it flushes, librdkafka does not linger. */
static void lead(wb_kafka_outlet *outlet, wb_kafka_waiter *waiter, int milliseconds)
{
    outlet->serving = waiter;
    (void)pthread_mutex_unlock(&outlet->lock);
    (void)rd_kafka_flush(outlet->client->rk, milliseconds);
    (void)pthread_mutex_lock(&outlet->lock);
    outlet->serving = NULL;
    if (outlet->waiting)
        (void)pthread_cond_signal(&outlet->waiting->changed);
}

static void follow(wb_kafka_outlet *outlet, wb_kafka_waiter *waiter, int milliseconds)
{
    wb_kafka_waiter **at = &outlet->waiting;
    struct timespec until = wb_kafka_condition_time(milliseconds);
    waiter->next = outlet->waiting;
    outlet->waiting = waiter;
    (void)pthread_cond_timedwait(&waiter->changed, &outlet->lock, &until);
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
}

void wb_kafka_outlet_serve(wb_kafka_outlet *outlet, wb_kafka_waiter *waiter, int milliseconds)
{
    int step = milliseconds < STEP ? milliseconds : STEP;
    if (outlet->serving)
        follow(outlet, waiter, step);
    else
        lead(outlet, waiter, step);
}

void wb_kafka_outlet_wake(wb_kafka_outlet *outlet, wb_kafka_waiter *waiter)
{
    if (outlet->serving == waiter)
        rd_kafka_yield(outlet->client->rk);
    else
        (void)pthread_cond_signal(&waiter->changed);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-share.h"

void wb_kafka_share_init(wb_kafka_share *share)
{
    (void)pthread_mutex_init(&share->lock, NULL);
    (void)pthread_cond_init(&share->changed, NULL);
}

void wb_kafka_share_destroy(wb_kafka_share *share)
{
    (void)pthread_cond_destroy(&share->changed);
    (void)pthread_mutex_destroy(&share->lock);
}

static void be_busy_no_more(wb_kafka_share *share)
{
    share->is_busy = 0;
    (void)pthread_cond_broadcast(&share->changed);
}

/* @locks lock held, but not while it works */
static void make(wb_kafka_share *share, const wb_kafka_share_kind *kind, wb_transport *transport)
{
    wb_kafka_shared *old = share->thing;
    wb_kafka_failure failure = { 0 };
    if (old)
        old->users++;
    share->thing = NULL;
    share->is_busy = 1;
    (void)pthread_mutex_unlock(&share->lock);
    if (old) {
        kind->retire(old);
        wb_kafka_share_give_back(share, kind, old);
    }
    wb_kafka_shared *made = kind->open(transport, &failure);
    (void)pthread_mutex_lock(&share->lock);
    share->thing = made;
    share->failure = failure;
    share->attempts++;
    be_busy_no_more(share);
}

wb_kafka_shared *wb_kafka_share_take(wb_kafka_share *share, const wb_kafka_share_kind *kind,
                                     wb_transport *transport, wb_kafka_failure *failure)
{
    (void)pthread_mutex_lock(&share->lock);
    unsigned attempts = share->attempts;
    while (share->is_busy)
        (void)pthread_cond_wait(&share->changed, &share->lock);
    int failed_meanwhile = !share->thing && share->attempts != attempts;
    if (!failed_meanwhile && !(share->thing && kind->is_usable(share->thing)))
        make(share, kind, transport);
    wb_kafka_shared *thing = share->thing;
    if (thing)
        thing->users++;
    else
        *failure = share->failure;
    (void)pthread_mutex_unlock(&share->lock);
    return thing;
}

/* While it ends nobody makes another: they would be taken for each other. */
void wb_kafka_share_give_back(wb_kafka_share *share, const wb_kafka_share_kind *kind,
                              wb_kafka_shared *thing)
{
    (void)pthread_mutex_lock(&share->lock);
    int is_last = --thing->users == 0, is_current = thing == share->thing;
    if (is_last && is_current) {
        share->thing = NULL;
        share->is_busy = 1;
    }
    (void)pthread_mutex_unlock(&share->lock);
    if (!is_last)
        return;
    kind->close(thing);
    if (!is_current)
        return;
    (void)pthread_mutex_lock(&share->lock);
    be_busy_no_more(share);
    (void)pthread_mutex_unlock(&share->lock);
}

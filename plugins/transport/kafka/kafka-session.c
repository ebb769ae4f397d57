/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-bases.h"
#include "plugins/transport/kafka/kafka-session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int refuse_purpose(const wb_transport_session *session, const char *what, wb_error *error)
{
    const wb_host *host = session->transport->host;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "the session was not opened to %s",
                      what);
}

/* ---- life ------------------------------------------------------------------------ */

static int has_transactions(const wb_transport *transport)
{
    return transport->endpoint->mode == WB_MODE_SENDS_ATOMIC;
}

/* Sessions that only send are for what is sent whatever becomes of a transaction. */
static int needs_transactions(const wb_transport *transport, uint32_t purpose)
{
    uint32_t both = WB_SESSION_RECEIVE | WB_SESSION_SEND;
    return has_transactions(transport) && (purpose & both) == both;
}

static int open_producer(wb_transport_session *session, uint32_t purpose, wb_error *error)
{
    int transactions = needs_transactions(session->transport, purpose);
    int result = wb_kafka_producer_open(&session->producer, session->transport,
                                        transactions ? session->name : NULL, error);
    /* Before offsets are asked for: those of a predecessor's open transaction are not final. */
    if (result == WB_OK && transactions)
        result = wb_kafka_transaction_init(&session->producer, error);
    return result;
}

static wb_kafka_consumer *take_consumer(wb_transport_session *session, wb_kafka_failure *failure)
{
    if (has_transactions(session->transport))
        return wb_kafka_consumer_open(session->transport, session->slot, session->name, failure);
    return wb_kafka_consumer_take(session->transport, failure);
}

static void give_back_consumer(wb_transport_session *session, wb_kafka_consumer *consumer)
{
    if (has_transactions(session->transport))
        wb_kafka_consumer_close(consumer);
    else
        wb_kafka_consumer_give_back(consumer);
}

static int open_receiver(wb_transport_session *session, uint32_t prefetch, wb_error *error)
{
    wb_kafka_failure failure = { 0 };
    wb_kafka_consumer *consumer = take_consumer(session, &failure);
    int code = consumer ? wb_kafka_receiver_attach(&session->receiver, consumer, prefetch) : 0;
    if (consumer && !code)
        return WB_OK;
    if (consumer) {
        (void)wb_kafka_failure_set(&failure, WB_RETRY, WB_CAUSE_OTHER, code,
                                   "could not make an event descriptor: %s", strerror(code));
        give_back_consumer(session, consumer);
    }
    return wb_kafka_failure_report(session->transport->host, &failure, error);
}

static int take_name(wb_transport_session *session, wb_error *error)
{
    wb_kafka_failure failure = { 0 };
    session->slot = wb_kafka_name_take(session->transport, session->name, &failure);
    return session->slot >= 0
               ? WB_OK
               : wb_kafka_failure_report(session->transport->host, &failure, error);
}

static int open_halves(wb_transport_session *session, uint32_t purpose, uint32_t prefetch,
                       wb_error *error)
{
    int result = WB_OK;
    if ((purpose & WB_SESSION_RECEIVE) && has_transactions(session->transport))
        result = take_name(session, error);
    session->producer.slot = session->slot;
    if (result == WB_OK && (purpose & WB_SESSION_SEND))
        result = open_producer(session, purpose, error);
    /* Last, because messages begin to arrive. */
    if (result == WB_OK && (purpose & WB_SESSION_RECEIVE))
        result = open_receiver(session, prefetch, error);
    return result;
}

int wb_kafka_session_open(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                          wb_transport_session **ret_session, wb_error *error)
{
    wb_transport_session *session = calloc(1, sizeof *session);
    if (!session)
        return transport->host->fail(transport->host, error, WB_RETRY, WB_CAUSE_OTHER, ENOMEM,
                                     "out of memory for a session");
    session->transport = transport;
    session->slot = -1;
    int result = open_halves(session, purpose, prefetch, error);
    if (result == WB_OK)
        *ret_session = session;
    else
        wb_kafka_session_close(session);
    return result;
}

/* Servers that take nothing for a while are no fault of what is received meanwhile: counted, it would be
 * given up when they have been away often enough. */
static int counts(const wb_transport_session *session)
{
    const wb_kafka_failure *failure = &session->producer.failure;
    return failure->result == WB_OK ||
           (failure->cause != WB_CAUSE_SERVER && failure->cause != WB_CAUSE_UNREACHABLE);
}

void wb_kafka_session_close(wb_transport_session *session)
{
    wb_kafka_consumer *consumer = session->receiver.consumer;
    if (session->producer.in_transaction)
        wb_kafka_transaction_abandon(&session->producer);
    wb_kafka_receiver_detach(&session->receiver, counts(session));
    if (consumer)
        give_back_consumer(session, consumer);
    wb_kafka_producer_close(&session->producer);
    wb_kafka_identity_give_back(&session->transport->identity, session->slot);
    free(session);
}

/* ---- receiving ------------------------------------------------------------------- */

int wb_kafka_session_set_prefetch(wb_transport_session *session, uint32_t prefetch,
                                  wb_error *error)
{
    wb_kafka_consumer *consumer = session->receiver.consumer;
    if (!consumer)
        return refuse_purpose(session, "receive", error);
    (void)pthread_mutex_lock(&consumer->lock);
    session->receiver.prefetch = prefetch ? prefetch : 1;
    (void)pthread_mutex_unlock(&consumer->lock);
    return WB_OK;
}

static int report_consumer(wb_transport_session *session, wb_error *error)
{
    wb_kafka_consumer *consumer = session->receiver.consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    int result = wb_kafka_failure_report(session->transport->host, &consumer->failure, error);
    (void)pthread_mutex_unlock(&consumer->lock);
    return result;
}

/* A session that can no longer send is of no use for receiving: find out before the handlers
 * have run, not after. */
int wb_kafka_session_receive(wb_transport_session *session, int64_t deadline,
                             const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                             wb_error *error)
{
    *ret_count = 0;
    if (!wb_kafka_receiver_is_open(&session->receiver))
        return refuse_purpose(session, "receive", error);
    if (wb_kafka_producer_follow(&session->producer) != WB_OK)
        return wb_kafka_failure_report(session->transport->host, &session->producer.failure, error);
    int result = wb_kafka_receiver_receive(&session->receiver, deadline, ret_messages, max,
                                           ret_count);
    return result == WB_OK ? WB_OK : report_consumer(session, error);
}

/* Others receive them as well: what was done with them must not be committed. */
static int refuse_lost(const wb_transport_session *session, wb_error *error)
{
    const wb_host *host = session->transport->host;
    return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0,
                      "partitions were taken away before the transaction was committed");
}

int wb_kafka_session_acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                                 size_t count, wb_error *error)
{
    if (!wb_kafka_receiver_is_open(&session->receiver))
        return refuse_purpose(session, "receive", error);
    if (session->producer.in_transaction) {
        if (!wb_kafka_receiver_settle(&session->receiver, messages, count))
            return refuse_lost(session, error);
    } else {
        wb_kafka_receiver_acknowledge(&session->receiver, messages, count);
    }
    session->transport->host->crash_point("acknowledge_sent");
    return WB_OK;
}

int wb_kafka_session_give_back(wb_transport_session *session, const wb_incoming *const *messages,
                               size_t count, wb_error *error)
{
    if (!wb_kafka_receiver_is_open(&session->receiver))
        return refuse_purpose(session, "receive", error);
    wb_kafka_receiver_give_back(&session->receiver, messages, count);
    return WB_OK;
}

void wb_kafka_session_interrupt(wb_transport_session *session)
{
    if (!wb_kafka_receiver_is_open(&session->receiver))
        return;
    atomic_store(&session->receiver.interrupted, 1);
    wb_kafka_receiver_wake(&session->receiver);
}

int wb_kafka_session_stop_receiving(wb_transport_session *session, wb_error *error)
{
    if (!wb_kafka_receiver_is_open(&session->receiver))
        return refuse_purpose(session, "receive", error);
    wb_kafka_receiver_stop(&session->receiver);
    return WB_OK;
}

/* ---- sending --------------------------------------------------------------------- */

int wb_kafka_session_send(wb_transport_session *session, wb_operation *const *operations,
                          size_t count, int64_t deadline, wb_error *error)
{
    const wb_transport *transport = session->transport;
    wb_kafka_window_unsend(operations, count, WB_NOT_CONNECTED);
    if (!wb_kafka_producer_is_open(&session->producer))
        return refuse_purpose(session, "send", error);
    int64_t latest = transport->host->now() + transport->config->confirm_timeout;
    return wb_kafka_bases_send(&session->producer, operations, count,
                               deadline < latest ? deadline : latest, error);
}

/* ---- transactions ---------------------------------------------------------------- */

int wb_kafka_session_begin(wb_transport_session *session, wb_error *error)
{
    if (!session->producer.has_transactions)
        return refuse_purpose(session, "use transactions", error);
    return wb_kafka_transaction_begin(&session->producer, &session->receiver, error);
}

int wb_kafka_session_commit(wb_transport_session *session, wb_error *error)
{
    if (!session->producer.has_transactions)
        return refuse_purpose(session, "use transactions", error);
    return wb_kafka_transaction_commit(&session->producer, &session->receiver, error);
}

int wb_kafka_session_rollback(wb_transport_session *session, wb_error *error)
{
    if (!session->producer.has_transactions)
        return refuse_purpose(session, "use transactions", error);
    return wb_kafka_transaction_rollback(&session->producer, &session->receiver, error);
}

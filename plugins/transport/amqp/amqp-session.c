/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plugins/transport/amqp/amqp-consume.h"
#include "plugins/transport/amqp/amqp-judge.h"
#include "plugins/transport/amqp/amqp-keeper.h"
#include "plugins/transport/amqp/amqp-silence.h"

/* ---- entering and leaving -------------------------------------------------------- */

static void enter(wb_transport_session *session, int64_t deadline)
{
    (void)pthread_mutex_lock(&session->lock);
    for (size_t i = 0; i < 2; i++) {
        if (!session->group.members[i])
            continue;
        session->group.members[i]->renews = 0;
        session->group.members[i]->deadline = deadline;
    }
}

static void leave(wb_transport_session *session)
{
    (void)pthread_mutex_unlock(&session->lock);
}

static int64_t in(const wb_transport_session *session, int64_t duration)
{
    return session->transport->host->now() + duration;
}

/* The first of its connections that failed, whoever noticed, has ended the session. */
static int report_failure(const wb_transport_session *session, wb_error *error)
{
    for (size_t i = 0; i < 2; i++) {
        const wb_amqp_connection *connection = session->group.members[i];
        if (connection && connection->failure.result != WB_OK)
            return wb_amqp_failure_report(session->transport->host, &connection->failure, error);
    }
    return WB_OK;
}

static int refuse_purpose(const wb_transport_session *session, const char *what, wb_error *error)
{
    const wb_host *host = session->transport->host;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "the session was not opened to %s",
                      what);
}

/* ---- life ------------------------------------------------------------------------ */

static int connect_all(wb_transport_session *session, uint32_t purpose, uint32_t prefetch)
{
    int result = WB_OK;
    if (purpose & WB_SESSION_SEND) {
        session->group.members[1] = &session->sender.connection;
        result = wb_amqp_sender_open(&session->sender, session->transport, &session->group);
    }
    /* Last, because messages begin to arrive. */
    if (result == WB_OK && (purpose & WB_SESSION_RECEIVE)) {
        session->group.members[0] = &session->receiver.connection;
        result = wb_amqp_receiver_open(&session->receiver, session->transport, &session->group,
                                       prefetch);
    }
    return result;
}

static int start(wb_transport_session *session, uint32_t purpose, uint32_t prefetch,
                 wb_error *error)
{
    const wb_host *host = session->transport->host;
    session->group.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session->group.wake < 0)
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, errno,
                          "could not make an event descriptor: %s", strerror(errno));
    if (connect_all(session, purpose, prefetch) != WB_OK)
        return report_failure(session, error);
    int failed = wb_amqp_keeper_start(session);
    if (failed)
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, failed,
                          "could not start a thread: %s", strerror(failed));
    return WB_OK;
}

int wb_amqp_session_open(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                         wb_transport_session **ret_session, wb_error *error)
{
    wb_transport_session *session = calloc(1, sizeof *session);
    if (!session)
        return transport->host->fail(transport->host, error, WB_RETRY, WB_CAUSE_SERVER, ENOMEM,
                                     "out of memory for a session");
    session->transport = transport;
    session->purpose = purpose;
    session->keeper.wake = -1;
    (void)pthread_mutex_init(&session->lock, NULL);
    (void)pthread_mutex_init(&session->keeper.closing, NULL);
    int result = start(session, purpose, prefetch, error);
    if (result == WB_OK)
        *ret_session = session;
    else
        wb_amqp_session_close(session);
    return result;
}

void wb_amqp_session_close(wb_transport_session *session)
{
    wb_amqp_keeper_stop(session);
    if (session->receiver.connection.failure.result != WB_OK ||
        session->sender.connection.failure.result != WB_OK)
        wb_amqp_judge_doubt(session->transport);
    wb_amqp_receiver_close(&session->receiver);
    session->group.members[0] = NULL;
    wb_amqp_sender_close(&session->sender);
    if (session->group.wake >= 0)
        (void)close(session->group.wake);
    (void)pthread_mutex_destroy(&session->keeper.closing);
    (void)pthread_mutex_destroy(&session->lock);
    free(session);
}

/* ---- receiving ------------------------------------------------------------------- */

int wb_amqp_session_set_prefetch(wb_transport_session *session, uint32_t prefetch, wb_error *error)
{
    if (!session->group.members[0])
        return refuse_purpose(session, "receive", error);
    enter(session, in(session, session->transport->config->connect_timeout));
    wb_amqp_consume_prefetch(&session->receiver, prefetch);
    (void)wb_amqp_flush(&session->receiver.connection);
    int result = session->receiver.connection.failure.result;
    if (result != WB_OK)
        (void)report_failure(session, error);
    leave(session);
    return result;
}

static int was_interrupted(const wb_transport_session *session)
{
    eventfd_t count;
    return eventfd_read(session->group.wake, &count) == 0;
}

/* A failure leaves nothing handed out: what the broker did not hear of comes again. */
static int forget(wb_transport_session *session, const wb_incoming *last, size_t *ret_count,
                  wb_error *error)
{
    if (wb_amqp_receiver_forget(&session->receiver, last) == WB_OK)
        return WB_OK;
    *ret_count = 0;
    return report_failure(session, error);
}

/* A session that can no longer send is of no use for receiving: find out before the
 * handlers have run, not after. */
static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    wb_amqp_receiver *receiver = &session->receiver;
    wb_amqp_consume_again(receiver);
    wb_amqp_flush_some(&receiver->connection);
    wb_amqp_wait(&session->group, 0, 0);
    for (;;) {
        int result = report_failure(session, error);
        if (result != WB_OK)
            return result;
        *ret_count = wb_amqp_receiver_take(receiver, ret_messages, max);
        if (*ret_count)
            return forget(session, ret_messages[*ret_count - 1], ret_count, error);
        if (receiver->stopping && wb_amqp_consume_is_drained(receiver))
            return WB_OK;
        if (was_interrupted(session) || in(session, 0) >= deadline)
            return WB_OK;
        /* Who only looks, or is woken, may have something to settle first. */
        if (receiver->connection.deaf) {
            (void)wb_amqp_receiver_end_deaf(receiver);
            continue;
        }
        if (wb_amqp_silence_is_long(receiver)) {
            wb_amqp_silence_end(receiver);
            continue;
        }
        wb_amqp_wait(&session->group, deadline, 1);
    }
}

int wb_amqp_session_receive(wb_transport_session *session, int64_t deadline,
                            const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                            wb_error *error)
{
    *ret_count = 0;
    if (!session->group.members[0])
        return refuse_purpose(session, "receive", error);
    enter(session, deadline);
    int result = receive(session, deadline, ret_messages, max, ret_count, error);
    /* Whoever wanted it released while we were here meant what was there before. */
    atomic_store(&session->keeper.release, 0);
    leave(session);
    return result;
}

/* What waits to be taken may stand before the answer: receive() reads on then. */
int wb_amqp_session_stop_receiving(wb_transport_session *session, wb_error *error)
{
    wb_amqp_receiver *receiver = &session->receiver;
    wb_amqp_connection *connection = &receiver->connection;
    if (!session->group.members[0])
        return refuse_purpose(session, "receive", error);
    enter(session, in(session, session->transport->config->connect_timeout));
    wb_amqp_consume_stop(receiver);
    wb_amqp_flush_some(connection);
    while (connection->failure.result == WB_OK && wb_amqp_consume_is_on(receiver) &&
           !connection->gated && !connection->paused && !connection->deaf &&
           in(session, 0) < connection->deadline)
        wb_amqp_wait(&session->group, connection->deadline, 0);
    int result = connection->failure.result;
    if (result != WB_OK)
        (void)report_failure(session, error);
    leave(session);
    return result;
}

void wb_amqp_session_release_prefetched(wb_transport_session *session)
{
    if (!session->group.members[0])
        return;
    atomic_store(&session->keeper.release, 1);
    (void)eventfd_write(session->keeper.wake, 1);
}

static int settle(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                  int requeue, wb_error *error)
{
    if (!session->group.members[0])
        return refuse_purpose(session, "receive", error);
    enter(session, in(session, session->transport->config->confirm_timeout));
    int result = wb_amqp_receiver_settle(&session->receiver, messages, count, requeue);
    if (result != WB_OK)
        result = report_failure(session, error);
    leave(session);
    return result;
}

/* No longer than that, nor where reading has stopped: the broker has been told, and mostly has read it. */
#define ASKED_MAX INT64_C(1000000000)

static int await_read(wb_transport_session *session, wb_error *error)
{
    wb_amqp_receiver *receiver = &session->receiver;
    wb_amqp_connection *connection = &receiver->connection;
    if (!session->group.members[0])
        return refuse_purpose(session, "receive", error);
    enter(session, in(session, session->transport->config->confirm_timeout));
    int64_t until = in(session, ASKED_MAX);
    int result = connection->deaf ? connection->failure.result : wb_amqp_receiver_ask(receiver);
    while (result == WB_OK && receiver->asked && !connection->gated && !connection->paused &&
           !connection->deaf && in(session, 0) < until) {
        wb_amqp_wait(&session->group, until, 0);
        result = connection->failure.result;
    }
    if (result != WB_OK)
        result = report_failure(session, error);
    leave(session);
    return result;
}

int wb_amqp_session_acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                                size_t count, wb_error *error)
{
    if (count == 0)
        return await_read(session, error);
    int result = settle(session, messages, count, 0, error);
    session->transport->host->crash_point("acknowledge_sent");
    return result;
}

int wb_amqp_session_give_back(wb_transport_session *session, const wb_incoming *const *messages,
                              size_t count, wb_error *error)
{
    return settle(session, messages, count, 1, error);
}

void wb_amqp_session_interrupt(wb_transport_session *session)
{
    (void)eventfd_write(session->group.wake, 1);
}

/* ---- sending --------------------------------------------------------------------- */

static void set_sender(wb_transport_session *session, wb_amqp_connection *connection)
{
    (void)pthread_mutex_lock(&session->keeper.closing);
    session->group.members[1] = connection;
    if (!connection)
        wb_amqp_sender_drop(&session->sender);
    (void)pthread_mutex_unlock(&session->keeper.closing);
}

/* Nothing was published. What will not be mended by waiting comes up when the session is
 * opened again, and is no operation's doing. */
static int report_no_way_out(wb_transport_session *session, wb_error *error)
{
    const wb_amqp_failure *failure = &session->sender.connection.failure;
    int is_passing = failure->cause == WB_CAUSE_UNREACHABLE || failure->cause == WB_CAUSE_SERVER;
    const wb_host *host = session->transport->host;
    return host->fail(host, error, is_passing ? WB_RETRY : WB_NOT_CONNECTED,
                      is_passing ? failure->cause : WB_CAUSE_SERVER, failure->code,
                      "sending cannot go on: %s", failure->text);
}

/* The mutex is free while it connects, so that the keeper looks after what receives. */
static int reopen_sender(wb_transport_session *session, int64_t deadline, wb_error *error)
{
    wb_amqp_sender *sender = &session->sender;
    leave(session);
    int result = wb_amqp_sender_reconnect(sender, session->transport, &session->group, deadline);
    (void)pthread_mutex_lock(&session->lock);
    if (result == WB_OK) {
        set_sender(session, &sender->connection);
        return WB_OK;
    }
    result = report_failure(session, error);
    if (result == WB_OK)
        result = report_no_way_out(session, error);
    wb_amqp_sender_drop(sender);
    return result;
}

/* Confirms do not come: the sending connection is given up, and what is in hand is not. */
static int give_up_sender(wb_transport_session *session, wb_error *error)
{
    atomic_store(&session->transport->unconfirmed, 1);
    set_sender(session, NULL);
    int result = report_failure(session, error);
    return result == WB_OK ? WB_IN_DOUBT : result;
}

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; i < count; i++)
        operations[i]->result = WB_NOT_CONNECTED;
    if (!session->group.members[1])
        result = reopen_sender(session, deadline, error);
    if (result == WB_OK)
        result = wb_amqp_sender_send(&session->sender, operations, count, error);
    return result == WB_IN_DOUBT ? give_up_sender(session, error) : result;
}

int wb_amqp_session_send(wb_transport_session *session, wb_operation *const *operations,
                         size_t count, int64_t deadline, wb_error *error)
{
    if (!(session->purpose & WB_SESSION_SEND))
        return refuse_purpose(session, "send", error);
    int64_t latest = in(session, session->transport->config->confirm_timeout);
    if (deadline > latest)
        deadline = latest;
    enter(session, deadline);
    int result = send(session, operations, count, deadline, error);
    leave(session);
    return result;
}

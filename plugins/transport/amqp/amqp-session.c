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
    for (size_t i = 0; i < session->group.count; i++) {
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
    for (size_t i = 0; i < session->group.count; i++) {
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

/* A connection a queue: where reading one has to wait, the others go on. */
static int connect_receivers(wb_transport_session *session, uint32_t prefetch)
{
    const wb_endpoint_info *endpoint = session->transport->endpoint;
    int result = WB_OK;
    for (size_t i = 0; i < session->receiver_count && result == WB_OK; i++) {
        wb_amqp_receiver *receiver = &session->receivers[i];
        session->group.members[session->group.count++] = &receiver->connection;
        result = wb_amqp_receiver_open(receiver, session->transport, &session->group,
                                       wb_amqp_judge_own_queue(endpoint, i), prefetch);
    }
    return result;
}

static int connect_all(wb_transport_session *session, uint32_t prefetch)
{
    int result = WB_OK;
    session->group.count = WB_AMQP_SENDER + 1;
    if (session->purpose & WB_SESSION_SEND) {
        session->group.members[WB_AMQP_SENDER] = &session->sender.connection;
        result = wb_amqp_sender_open(&session->sender, session->transport, &session->group);
    }
    /* Last, because messages begin to arrive. */
    return result == WB_OK ? connect_receivers(session, prefetch) : result;
}

static int make_receivers(wb_transport_session *session)
{
    if (!(session->purpose & WB_SESSION_RECEIVE))
        return WB_OK;
    session->receiver_count = wb_amqp_judge_count_own_queues(session->transport->endpoint);
    session->receivers = calloc(session->receiver_count, sizeof *session->receivers);
    if (!session->receivers)
        session->receiver_count = 0;
    return session->receivers ? WB_OK : WB_RETRY;
}

static int start(wb_transport_session *session, uint32_t prefetch, wb_error *error)
{
    const wb_host *host = session->transport->host;
    session->group.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session->group.wake < 0)
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, errno,
                          "could not make an event descriptor: %s", strerror(errno));
    if (make_receivers(session) != WB_OK)
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, ENOMEM, "out of memory for a session");
    if (connect_all(session, prefetch) != WB_OK)
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
    int result = start(session, prefetch, error);
    if (result == WB_OK)
        *ret_session = session;
    else
        wb_amqp_session_close(session);
    return result;
}

static int has_failed(const wb_transport_session *session)
{
    int failed = session->sender.connection.failure.result != WB_OK;
    for (size_t i = 0; i < session->receiver_count; i++)
        failed |= session->receivers[i].connection.failure.result != WB_OK;
    return failed;
}

static void close_receivers(wb_transport_session *session)
{
    for (size_t i = 0; i < session->receiver_count; i++) {
        wb_amqp_receiver_close(&session->receivers[i]);
        session->group.members[WB_AMQP_SENDER + 1 + i] = NULL;
    }
    free(session->receivers);
}

void wb_amqp_session_close(wb_transport_session *session)
{
    wb_amqp_keeper_stop(session);
    if (has_failed(session))
        wb_amqp_judge_doubt(session->transport);
    close_receivers(session);
    wb_amqp_sender_close(&session->sender);
    if (session->group.wake >= 0)
        (void)close(session->group.wake);
    (void)pthread_mutex_destroy(&session->keeper.closing);
    (void)pthread_mutex_destroy(&session->lock);
    free(session);
}

/* ---- receiving ------------------------------------------------------------------- */

/* Of the receivers; the session has failed with any. */
static int result_of(const wb_transport_session *session)
{
    int result = WB_OK;
    for (size_t i = 0; i < session->receiver_count && result == WB_OK; i++)
        result = session->receivers[i].connection.failure.result;
    return result;
}

int wb_amqp_session_set_prefetch(wb_transport_session *session, uint32_t prefetch, wb_error *error)
{
    if (!session->receivers)
        return refuse_purpose(session, "receive", error);
    enter(session, in(session, session->transport->config->connect_timeout));
    for (size_t i = 0; i < session->receiver_count; i++) {
        wb_amqp_consume_prefetch(&session->receivers[i], prefetch);
        (void)wb_amqp_flush(&session->receivers[i].connection);
    }
    int result = result_of(session);
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

/* Of those receivers, one a bit, which have nothing to take. @return whether there was something to do. */
static int settle_silence(wb_transport_session *session, uint32_t which)
{
    for (size_t i = 0; i < session->receiver_count; i++) {
        wb_amqp_receiver *receiver = &session->receivers[i];
        if (!(which & UINT32_C(1) << i))
            continue;
        if (receiver->connection.deaf)
            (void)wb_amqp_receiver_end_deaf(receiver);
        else if (wb_amqp_silence_is_long(receiver))
            wb_amqp_silence_end(receiver);
        else
            continue;
        return 1;
    }
    return 0;
}

/* What is there, of each queue in its turn: one that is full of messages never fills every batch, nor keeps another from being
 * settled that has nothing. A failure leaves nothing handed out: what the broker did not hear of comes again. */
static int take(wb_transport_session *session, const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                wb_error *error)
{
    const size_t queues = session->receiver_count;
    uint32_t silent = 0;
    *ret_count = 0;
    for (size_t i = 0; i < queues && *ret_count < max; i++) {
        const size_t at = (session->turn + i) % queues;
        wb_amqp_receiver *receiver = &session->receivers[at];
        const size_t count = wb_amqp_receiver_take(receiver, ret_messages + *ret_count, max - *ret_count);
        *ret_count += count;
        silent |= count ? 0 : UINT32_C(1) << at;
        if (count && wb_amqp_receiver_forget(receiver, ret_messages[*ret_count - 1]) != WB_OK) {
            *ret_count = 0;
            return report_failure(session, error);
        }
    }
    session->turn = (session->turn + 1) % queues;
    if (*ret_count)
        (void)settle_silence(session, silent);
    return WB_OK;
}

static void begin_to_receive(wb_transport_session *session)
{
    for (size_t i = 0; i < session->receiver_count; i++) {
        wb_amqp_consume_again(&session->receivers[i]);
        wb_amqp_flush_some(&session->receivers[i].connection);
    }
    wb_amqp_wait(&session->group, 0, 0);
}

static int are_drained(const wb_transport_session *session)
{
    int are = 1;
    for (size_t i = 0; i < session->receiver_count; i++)
        are &= session->receivers[i].stopping && wb_amqp_consume_is_drained(&session->receivers[i]);
    return are;
}

/* A session that can no longer send is of no use for receiving: find out before the
 * handlers have run, not after. */
static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    begin_to_receive(session);
    for (;;) {
        int result = report_failure(session, error);
        if (result == WB_OK)
            result = take(session, ret_messages, max, ret_count, error);
        if (result != WB_OK || *ret_count)
            return result;
        if (are_drained(session) || was_interrupted(session) || in(session, 0) >= deadline)
            return WB_OK;
        /* Who only looks, or is woken, may have something to settle first. */
        if (!settle_silence(session, UINT32_MAX))
            wb_amqp_wait(&session->group, deadline, 1);
    }
}

int wb_amqp_session_receive(wb_transport_session *session, int64_t deadline,
                            const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                            wb_error *error)
{
    *ret_count = 0;
    if (!session->receivers)
        return refuse_purpose(session, "receive", error);
    enter(session, deadline);
    int result = receive(session, deadline, ret_messages, max, ret_count, error);
    /* Whoever wanted it released while we were here meant what was there before. */
    atomic_store(&session->keeper.release, 0);
    leave(session);
    return result;
}

static int is_read(const wb_amqp_connection *connection)
{
    return !connection->gated && !connection->paused && !connection->deaf;
}

/* Whether one that is stopped may still hear of messages that were on their way. */
static int is_any_on(const wb_transport_session *session)
{
    int is_any = 0;
    for (size_t i = 0; i < session->receiver_count; i++)
        is_any |= wb_amqp_consume_is_on(&session->receivers[i]) && is_read(&session->receivers[i].connection);
    return is_any;
}

/* What waits to be taken may stand before the answer: receive() reads on then. */
int wb_amqp_session_stop_receiving(wb_transport_session *session, wb_error *error)
{
    if (!session->receivers)
        return refuse_purpose(session, "receive", error);
    const int64_t deadline = in(session, session->transport->config->connect_timeout);
    enter(session, deadline);
    for (size_t i = 0; i < session->receiver_count; i++) {
        wb_amqp_consume_stop(&session->receivers[i]);
        wb_amqp_flush_some(&session->receivers[i].connection);
    }
    while (result_of(session) == WB_OK && is_any_on(session) && in(session, 0) < deadline)
        wb_amqp_wait(&session->group, deadline, 0);
    int result = result_of(session);
    if (result != WB_OK)
        (void)report_failure(session, error);
    leave(session);
    return result;
}

void wb_amqp_session_release_prefetched(wb_transport_session *session)
{
    if (!session->receivers)
        return;
    atomic_store(&session->keeper.release, 1);
    (void)eventfd_write(session->keeper.wake, 1);
}

static int settle(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                  int requeue, wb_error *error)
{
    if (!session->receivers)
        return refuse_purpose(session, "receive", error);
    enter(session, in(session, session->transport->config->confirm_timeout));
    int result = result_of(session);
    if (result == WB_OK)
        wb_amqp_receiver_choose(messages, count);
    for (size_t i = 0; i < session->receiver_count && result == WB_OK; i++)
        result = wb_amqp_receiver_settle(&session->receivers[i], requeue);
    if (result != WB_OK)
        result = report_failure(session, error);
    leave(session);
    return result;
}

/* No longer than that, nor where reading has stopped: the broker has been told, and mostly has read it. */
#define ASKED_MAX INT64_C(1000000000)

static int ask_all(wb_transport_session *session)
{
    int result = WB_OK;
    for (size_t i = 0; i < session->receiver_count && result == WB_OK; i++) {
        wb_amqp_receiver *receiver = &session->receivers[i];
        result = receiver->connection.deaf ? receiver->connection.failure.result : wb_amqp_receiver_ask(receiver);
    }
    return result;
}

static int is_any_asked(const wb_transport_session *session)
{
    int is_any = 0;
    for (size_t i = 0; i < session->receiver_count; i++)
        is_any |= session->receivers[i].asked && is_read(&session->receivers[i].connection);
    return is_any;
}

static int await_read(wb_transport_session *session, wb_error *error)
{
    if (!session->receivers)
        return refuse_purpose(session, "receive", error);
    enter(session, in(session, session->transport->config->confirm_timeout));
    int64_t until = in(session, ASKED_MAX);
    int result = ask_all(session);
    while (result == WB_OK && is_any_asked(session) && in(session, 0) < until) {
        wb_amqp_wait(&session->group, until, 0);
        result = result_of(session);
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
    session->group.members[WB_AMQP_SENDER] = connection;
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
    if (!session->group.members[WB_AMQP_SENDER])
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

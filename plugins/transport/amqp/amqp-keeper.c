/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-keeper.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugins/common/thread.h"
#include "plugins/transport/amqp/amqp-consume.h"

#define MILLISECONDS INT64_C(1000000)
#define PERIOD_MIN (100 * MILLISECONDS)
#define PERIOD_MAX (2000 * MILLISECONDS)
/* While messages that should be given back may still arrive, or the worker is in. */
#define PERIOD_RELEASE (20 * MILLISECONDS)

/* Often enough that a heartbeat which is due at half of the interval is on time. */
static int64_t choose_period(const wb_amqp_group *group)
{
    int64_t period = PERIOD_MAX;
    for (size_t i = 0; i < group->count; i++) {
        const wb_amqp_connection *connection = group->members[i];
        if (connection && connection->heartbeat && connection->heartbeat / 4 < period)
            period = connection->heartbeat / 4;
    }
    return period > PERIOD_MIN ? period : PERIOD_MIN;
}

/* The descriptor is not closed meanwhile: `closing` is held. */
static void free_stuck_writer(wb_amqp_connection *connection)
{
    int64_t deadline = atomic_load(&connection->write_deadline);
    if (deadline && deadline < connection->transport->host->now())
        (void)shutdown(connection->fd, SHUT_RDWR);
}

static void release(wb_transport_session *session)
{
    int is_left = 0;
    if (!atomic_load(&session->keeper.release))
        return;
    for (size_t i = 0; i < session->receiver_count; i++)
        is_left |= wb_amqp_consume_release(&session->receivers[i]);
    if (!is_left)
        atomic_store(&session->keeper.release, 0);
}

static void look_after(wb_transport_session *session)
{
    (void)pthread_mutex_lock(&session->keeper.closing);
    for (size_t i = 0; i < session->group.count; i++) {
        if (session->group.members[i])
            free_stuck_writer(session->group.members[i]);
    }
    (void)pthread_mutex_unlock(&session->keeper.closing);
    if (pthread_mutex_trylock(&session->lock) != 0)
        return;
    release(session);
    wb_amqp_wait(&session->group, 0, 0);
    /* Nobody else may be looking for a while, and others may wait for its memory. */
    for (size_t i = 0; i < session->receiver_count; i++)
        if (session->receivers[i].connection.failure.result != WB_OK)
            wb_amqp_receiver_drop_ready(&session->receivers[i]);
    (void)pthread_mutex_unlock(&session->lock);
}

static void *keep(void *argument)
{
    wb_transport_session *session = argument;
    wb_amqp_keeper *keeper = &session->keeper;
    struct pollfd wake = { .fd = keeper->wake, .events = POLLIN };
    eventfd_t count;
    while (!atomic_load(&keeper->stop)) {
        int64_t period = atomic_load(&keeper->release) ? PERIOD_RELEASE : keeper->period;
        (void)poll(&wake, 1, (int)(period / MILLISECONDS));
        (void)eventfd_read(keeper->wake, &count);
        if (!atomic_load(&keeper->stop))
            look_after(session);
    }
    return NULL;
}

int wb_amqp_keeper_start(wb_transport_session *session)
{
    wb_amqp_keeper *keeper = &session->keeper;
    keeper->period = choose_period(&session->group);
    keeper->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (keeper->wake < 0)
        return errno;
    /* It reads frames as the worker does, and decodes as deep. */
    int failed = wb_common_thread_start(&keeper->thread, WB_WORKER_STACK, keep, session);
    keeper->running = !failed;
    return failed;
}

void wb_amqp_keeper_stop(wb_transport_session *session)
{
    wb_amqp_keeper *keeper = &session->keeper;
    if (keeper->running) {
        atomic_store(&keeper->stop, 1);
        (void)eventfd_write(keeper->wake, 1);
        (void)pthread_join(keeper->thread, NULL);
    }
    if (keeper->wake >= 0)
        (void)close(keeper->wake);
    keeper->running = 0;
    keeper->wake = -1;
}

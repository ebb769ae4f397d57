/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MILLISECONDS INT64_C(1000000)
#define PERIOD_MIN (100 * MILLISECONDS)
#define PERIOD_MAX (2000 * MILLISECONDS)

/* Often enough that a heartbeat which is due at half of the interval is on time. */
static int64_t choose_period(const wb_amqp_group *group)
{
    int64_t period = PERIOD_MAX;
    for (size_t i = 0; i < 2; i++) {
        const wb_amqp_connection *connection = group->members[i];
        if (connection && connection->heartbeat && connection->heartbeat / 4 < period)
            period = connection->heartbeat / 4;
    }
    return period > PERIOD_MIN ? period : PERIOD_MIN;
}

/* The descriptor is open as long as this thread runs. */
static void free_stuck_writer(wb_amqp_connection *connection)
{
    int64_t deadline = atomic_load(&connection->write_deadline);
    if (deadline && deadline < connection->transport->host->now())
        (void)shutdown(connection->fd, SHUT_RDWR);
}

static void look_after(wb_transport_session *session)
{
    for (size_t i = 0; i < 2; i++) {
        if (session->group.members[i])
            free_stuck_writer(session->group.members[i]);
    }
    if (pthread_mutex_trylock(&session->lock) != 0)
        return;
    wb_amqp_wait(&session->group, 0, 0);
    (void)pthread_mutex_unlock(&session->lock);
}

static void *keep(void *argument)
{
    wb_transport_session *session = argument;
    struct pollfd stop = { .fd = session->keeper.stop, .events = POLLIN };
    while (poll(&stop, 1, (int)(session->keeper.period / MILLISECONDS)) <= 0)
        look_after(session);
    return NULL;
}

int wb_amqp_keeper_start(wb_transport_session *session)
{
    wb_amqp_keeper *keeper = &session->keeper;
    sigset_t all, before;
    keeper->period = choose_period(&session->group);
    keeper->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (keeper->stop < 0)
        return errno;
    /* Signals are the host's business. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&keeper->thread, NULL, keep, session);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    keeper->running = !failed;
    return failed;
}

void wb_amqp_keeper_stop(wb_transport_session *session)
{
    wb_amqp_keeper *keeper = &session->keeper;
    if (keeper->running) {
        (void)eventfd_write(keeper->stop, 1);
        (void)pthread_join(keeper->thread, NULL);
    }
    if (keeper->stop >= 0)
        (void)close(keeper->stop);
    keeper->running = 0;
    keeper->stop = -1;
}

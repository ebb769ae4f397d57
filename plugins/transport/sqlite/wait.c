/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting without polling. Whoever makes messages available writes a byte to the
 * sessions file, and the kernel (inotify) tells every process that watches it. It also
 * tells when a descriptor of that file is closed, which is what happens to a process
 * that dies with messages in hand.
 *
 * No wake-up is lost: a waiter announces itself, then looks at the queue, then sleeps;
 * a writer commits, then rings. One watch serves all sessions of an endpoint: whoever
 * reads it wakes the others through their eventfd.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "plugins/transport/sqlite/transport.h"

#define SECOND INT64_C(1000000000)
/* Without a watch the queue is looked at this often. */
#define LOOK_UNWATCHED_EVERY (SECOND / 50)
/* How often to look for a lock that is about to be released. */
#define LOOKS_FOR_DEAD 10

static void wake(wb_transport_session *session)
{
    uint64_t one = 1;
    ssize_t written = write(session->wake, &one, sizeof one);
    (void)written; /* fails only when it is already as awake as can be */
}

/* ---- the watch ------------------------------------------------------------------- */

static void open_watch(wb_transport *transport)
{
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch >= 0 &&
        inotify_add_watch(watch, transport->sessions_path, IN_MODIFY | IN_CLOSE_WRITE) < 0) {
        (void)close(watch);
        watch = -1;
    }
    if (watch < 0)
        transport->host->log(transport->host, WB_LOG_WARNING,
                             "cannot watch for messages, will look every 20 ms",
                             (const wb_field[]){ { "file", transport->sessions_path },
                                                 { "reason", strerror(errno) } },
                             2);
    transport->watch = watch;
}

int wb_sqlite_wait_open(wb_transport_session *session, wb_error *error)
{
    wb_transport *transport = session->transport;
    session->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (session->wake < 0)
        return transport->host->fail(transport->host, error, WB_RETRY, WB_CAUSE_SERVER, errno,
                                     "could not make an eventfd: %s", strerror(errno));
    (void)pthread_mutex_lock(&transport->lock);
    if (!transport->sessions)
        open_watch(transport);
    session->next = transport->sessions;
    transport->sessions = session;
    (void)pthread_mutex_unlock(&transport->lock);
    return WB_OK;
}

void wb_sqlite_wait_close(wb_transport_session *session)
{
    wb_transport *transport = session->transport;
    if (session->wake < 0)
        return;
    (void)pthread_mutex_lock(&transport->lock);
    wb_transport_session **link = &transport->sessions;
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    if (!transport->sessions && transport->watch >= 0) {
        (void)close(transport->watch);
        transport->watch = -1;
    }
    (void)pthread_mutex_unlock(&transport->lock);
    (void)close(session->wake);
    session->wake = -1;
}

/* Read what the watch has to say. @return 1: something, 2: a descriptor was closed. */
static int read_watch(int watch)
{
    _Alignas(struct inotify_event) char events[4096];
    int seen = 0;
    ssize_t size;
    while ((size = read(watch, events, sizeof events)) > 0) {
        for (ssize_t at = 0; at < size;) {
            const struct inotify_event *event = (const struct inotify_event *)(events + at);
            int closed = (event->mask & (IN_CLOSE_WRITE | IN_Q_OVERFLOW)) != 0;
            seen |= closed ? 3 : 1;
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
    return seen;
}

/* Wake everybody who announced to wait; @locks transport->lock for the list. */
static void spread(wb_transport_session *reader)
{
    wb_transport *transport = reader->transport;
    (void)pthread_mutex_lock(&transport->lock);
    int seen = read_watch(transport->watch);
    for (wb_transport_session *each = transport->sessions; seen && each; each = each->next) {
        if (seen & 2)
            atomic_store(&each->died, LOOKS_FOR_DEAD);
        if (each != reader && atomic_load(&each->waiting))
            wake(each);
    }
    (void)pthread_mutex_unlock(&transport->lock);
}

/* ---- one session's wait ------------------------------------------------------------ */

void wb_sqlite_wait_prepare(wb_transport_session *session)
{
    atomic_store(&session->waiting, 1);
}

void wb_sqlite_wait_done(wb_transport_session *session)
{
    atomic_store(&session->waiting, 0);
}

void wb_sqlite_wait_for_change(wb_transport_session *session, int64_t until)
{
    int watch = session->transport->watch;
    int64_t left = until - session->db.host->now();
    if (watch < 0 && left > LOOK_UNWATCHED_EVERY)
        left = LOOK_UNWATCHED_EVERY;
    if (left < 0)
        left = 0;
    struct timespec time = { .tv_sec = left / SECOND, .tv_nsec = left % SECOND };
    struct pollfd files[2] = { { .fd = session->wake, .events = POLLIN },
                               { .fd = watch, .events = POLLIN } };
    if (ppoll(files, 2, &time, NULL) <= 0)
        return;
    if (files[0].revents) {
        uint64_t count;
        ssize_t size = read(session->wake, &count, sizeof count);
        (void)size;
    }
    if (files[1].revents)
        spread(session);
}

void wb_sqlite_wait_ring(wb_transport_session *session)
{
    ssize_t written = pwrite(session->sessions_fd, "\n", 1, 0);
    (void)written; /* a full disk: waiters look once a second */
}

void wb_sqlite_session_interrupt(wb_transport_session *session)
{
    atomic_store(&session->interrupted, 1);
    if (session->wake >= 0)
        wake(session);
}

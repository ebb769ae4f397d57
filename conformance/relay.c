/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/away.h"
#include "conformance/watches.h"
#include "core/base/arena.h"
#include "core/base/clock.h"

#define LINKS_MAX 128
/* An answer is complete when nothing more has come for so many milliseconds. */
#define QUIET 30

/* ---- links ----------------------------------------------------------------------------- */

typedef struct {
    int plugin; /* our end of what the plugin has now */
    int server; /* what the plugin had */
    int is_asking; /* the last bytes came from the plugin */
} relay_link;

struct wb_relay {
    relay_link links[LINKS_MAX];
    size_t count;
    int wake[2];
    wb_wires before;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    int is_armed, has_struck;
    int64_t away;   /* how long nobody connects anew after the loss */
    unsigned asked; /* requests since it was armed */
    unsigned spared;
    wb_loss loss;
    const char *command;
};

/* Two ends of a TCP connection, because a plugin may set options of TCP on its own. */
static int make_pair(int ends[2])
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[1] = -1;
    if (bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&address, &size) == 0 &&
        connect(ends[0], (struct sockaddr *)&address, size) == 0)
        ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)close(listener);
    if (ends[1] < 0) {
        (void)close(ends[0]);
        return -1;
    }
    for (int i = 0; i < 2; i++)
        (void)setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return 0;
}

/* The new end must behave as the old one did: blocking, and for how long. */
static void copy_manners(int from, int to)
{
    static const int timeouts[] = { SO_RCVTIMEO, SO_SNDTIMEO };
    struct timeval time;
    socklen_t size = sizeof time;
    (void)fcntl(to, F_SETFL, fcntl(from, F_GETFL));
    for (int i = 0; i < 2; i++)
        if (getsockopt(from, SOL_SOCKET, timeouts[i], &time, &size) == 0)
            (void)setsockopt(to, SOL_SOCKET, timeouts[i], &time, size);
}

/* What waits for a descriptor with epoll waits for the open file behind it, which our own duplicate
 * keeps alive: it has to be told. What is ready is then told anew, also of edges that were told before, and a
 * watch for one event that has had it hears of the end of the connection all the same. */
static int take_place(relay_link *link, int fd)
{
    int ends[2];
    wb_watch watches[WB_WATCHES_MAX];
    int cloexec = fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
    int server = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (server < 0)
        return -1;
    if (make_pair(ends) != 0) {
        (void)close(server);
        return -1;
    }
    copy_manners(fd, ends[1]);
    size_t watched = wb_watches_lift(fd, watches, WB_WATCHES_MAX);
    (void)dup3(ends[1], fd, cloexec);
    wb_watches_put(fd, watches, watched);
    (void)close(ends[1]);
    (void)fcntl(server, F_SETFL, fcntl(server, F_GETFL) & ~O_NONBLOCK); /* now that it is nobody else's */
    *link = (relay_link){ .plugin = ends[0], .server = server };
    return 0;
}

static void break_link(const relay_link *link)
{
    (void)shutdown(link->server, SHUT_RDWR);
    (void)shutdown(link->plugin, SHUT_RDWR);
}

static void break_links(const wb_relay *relay)
{
    for (size_t i = 0; i < relay->count; i++)
        break_link(&relay->links[i]);
}

/* ---- the thread ------------------------------------------------------------------------ */

static int forward(int to, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = send(to, bytes, size, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

static void await_quiet(int fd)
{
    char bytes[4096];
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    while (poll(&ready, 1, QUIET) > 0 && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

/* Counts, and says whether what came is lost, and how. */
static int is_lost(wb_relay *relay, relay_link *link, int is_request, wb_loss *ret_loss)
{
    pthread_mutex_lock(&relay->lock);
    relay->asked += is_request && !link->is_asking;
    link->is_asking = is_request;
    int is_due = relay->is_armed && relay->asked > relay->spared;
    int loses_requests = relay->loss == WB_LOSE_REQUEST || relay->loss == WB_CRASH_AT_REQUEST;
    relay->has_struck |= is_due && loses_requests == is_request;
    int has_struck = relay->has_struck;
    *ret_loss = relay->loss;
    pthread_mutex_unlock(&relay->lock);
    return has_struck;
}

static void strike(wb_relay *relay, const relay_link *link, wb_loss loss, const char *bytes, size_t size)
{
    if (loss == WB_CRASH_AT_REQUEST)
        (void)forward(link->server, bytes, size);
    if (loss == WB_LOSE_REPLY || loss == WB_CRASH_AT_REPLY)
        await_quiet(link->server);
    if (relay->command && (loss == WB_CRASH_AT_REQUEST || loss == WB_CRASH_AT_REPLY))
        (void)wb_relay_run(relay->command);
}

typedef enum { GOES_ON, ENDS, IS_LOST } link_state;

static link_state carry(wb_relay *relay, relay_link *link, int is_request)
{
    char bytes[65536];
    wb_loss loss;
    /* not to wait: a thread of the plugin that was about to read may have been first */
    ssize_t size = recv(is_request ? link->plugin : link->server, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return GOES_ON;
    if (size <= 0)
        return ENDS;
    if (is_lost(relay, link, is_request, &loss)) {
        strike(relay, link, loss, bytes, (size_t)size);
        return IS_LOST;
    }
    return forward(is_request ? link->server : link->plugin, bytes, (size_t)size) == 0 ? GOES_ON : ENDS;
}

/* A plugin may end one connection and go on with others. @return 0, or -1: something was lost. */
static int carry_all(wb_relay *relay, struct pollfd *ready)
{
    for (size_t i = 0; i < 2 * relay->count; i++) {
        relay_link *link = &relay->links[i / 2];
        const link_state state = ready[i].fd >= 0 && ready[i].revents ? carry(relay, link, i % 2 == 0) : GOES_ON;
        if (state == IS_LOST)
            return -1;
        if (state == ENDS) {
            break_link(link);
            ready[i].fd = ready[i ^ 1].fd = -1;
        }
    }
    return 0;
}

/* Nobody connects anew; who does all the same, by a system call, hardly gets a word out. */
static void keep_away(wb_relay *relay)
{
    struct pollfd wake = { .fd = relay->wake[0], .events = POLLIN };
    const int64_t until = wb_clock_monotonic() + relay->away;
    while (wb_clock_monotonic() < until && poll(&wake, 1, 1) == 0)
        (void)wb_wires_cut(&relay->before);
    wb_away(0);
}

static void *relay_main(void *argument)
{
    wb_relay *relay = argument;
    struct pollfd ready[2 * LINKS_MAX + 1];
    const size_t count = 2 * relay->count;
    int lost = 0;
    for (size_t i = 0; i < count; i++) {
        const relay_link *link = &relay->links[i / 2];
        ready[i] = (struct pollfd){ .fd = i % 2 ? link->server : link->plugin, .events = POLLIN };
    }
    ready[count] = (struct pollfd){ .fd = relay->wake[0], .events = POLLIN };
    while (!lost) {
        if (poll(ready, count + 1, -1) < 0 && errno != EINTR)
            break;
        if (ready[count].revents)
            break;
        lost = carry_all(relay, ready);
    }
    wb_away(lost && relay->away);
    break_links(relay);
    if (lost)
        keep_away(relay);
    return NULL;
}

/* ---- for the cases --------------------------------------------------------------------- */

wb_relay *wb_relay_start(const wb_wires *before)
{
    int fds[LINKS_MAX];
    wb_relay *relay = wb_alloc_zero(1, sizeof *relay);
    relay->before = *before;
    size_t found = wb_wires_find(before, fds, LINKS_MAX);
    for (size_t i = 0; i < found && found <= LINKS_MAX; i++) /* all of them, or one would be none of its */
        relay->count += take_place(&relay->links[relay->count], fds[i]) == 0;
    if (!relay->count || pipe2(relay->wake, O_CLOEXEC) != 0) {
        free(relay);
        return NULL;
    }
    pthread_mutex_init(&relay->lock, NULL);
    if (pthread_create(&relay->thread, NULL, relay_main, relay) != 0)
        abort();
    return relay;
}

void wb_relay_arm(wb_relay *relay, wb_loss loss, unsigned spared, const char *command)
{
    pthread_mutex_lock(&relay->lock);
    relay->loss = loss;
    relay->spared = spared;
    relay->command = command;
    relay->asked = 0;
    for (size_t i = 0; i < relay->count; i++)
        relay->links[i].is_asking = 0;
    relay->is_armed = 1;
    pthread_mutex_unlock(&relay->lock);
}

void wb_relay_keep_away(wb_relay *relay, int64_t duration)
{
    pthread_mutex_lock(&relay->lock);
    relay->away = duration;
    pthread_mutex_unlock(&relay->lock);
}

int wb_relay_has_struck(wb_relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    int has_struck = relay->has_struck;
    pthread_mutex_unlock(&relay->lock);
    return has_struck;
}

void wb_relay_stop(wb_relay *relay)
{
    (void)close(relay->wake[1]); /* its end wakes the thread */
    pthread_join(relay->thread, NULL);
    for (size_t i = 0; i < relay->count; i++) {
        (void)close(relay->links[i].plugin);
        (void)close(relay->links[i].server);
    }
    (void)close(relay->wake[0]);
    pthread_mutex_destroy(&relay->lock);
    free(relay);
}

int wb_relay_run(const char *command)
{
    extern char **environ;
    char shell[] = "sh", option[] = "-c";
    char *const arguments[] = { shell, option, (char *)(uintptr_t)command, NULL };
    posix_spawn_file_actions_t files;
    int status = -1;
    pid_t pid;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, 2, 1);
    int r = posix_spawn(&pid, "/bin/sh", &files, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    if (r != 0)
        return 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

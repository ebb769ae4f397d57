/* SPDX-License-Identifier: Apache-2.0
 *
 * A TCP proxy on loopback that makes a server look far away: every byte arrives half a
 * round trip after it was read, in each direction.
 *
 *     delay-proxy --rtt-us 300 --listen 15432 --target 5432
 *
 * Only time is added. Each chunk carries the time it is due and waits for nothing else,
 * so a pipeline of many chunks keeps its throughput. --listen 0 takes a free port; the
 * port is printed on stdout once it accepts. Ends on SIGTERM.
 *
 * One thread, epoll and one timerfd. The delay is the same for all, so chunks come due in
 * the order in which they were read: one list for the whole program, and the timer is set
 * for its head. A chunk that the receiver's socket does not take holds back its own
 * direction alone.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_SIZE (64 * 1024)
/* Bytes under way in a direction before reading pauses: 20 ms at 400 MB/s. */
#define UNDER_WAY_MAX (8 * 1024 * 1024)
#define EVENTS 64

struct chunk {
    struct chunk *next; /* in the program's list, then in its direction's */
    struct direction *direction;
    int64_t due;
    size_t size; /* 0: end of stream */
    size_t done;
    char data[];
};

struct direction {
    struct connection *connection;
    int from;
    int to;
    struct chunk *first; /* due, not written completely */
    struct chunk **last;
    size_t under_way;
    int ended; /* end of stream read */
};

struct connection {
    struct direction directions[2]; /* client to server, server to client */
    struct connection *next;
    int fds[2];
    int ends; /* ends of stream passed on */
    int broken;
    size_t chunks; /* in the program's list */
    uint32_t watched[2];
};

struct proxy {
    int epoll;
    int timer;
    int listener;
    int64_t delay;
    struct sockaddr_in target;
    struct chunk *first;
    struct chunk **last;
    struct connection *connections;
};

/* An epoll event points to the direction that its side reads, or to one of these. */
static char listener_mark, timer_mark;
static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "delay-proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ---- what is watched ------------------------------------------------------ */

/* Side i reads direction i and writes direction 1 - i. */
static uint32_t wanted_events(const struct connection *connection, int side)
{
    const struct direction *in = &connection->directions[side];
    const struct direction *out = &connection->directions[1 - side];
    if (connection->broken)
        return 0;
    return (!in->ended && in->under_way < UNDER_WAY_MAX ? (uint32_t)EPOLLIN : 0)
           | (out->first ? (uint32_t)EPOLLOUT : 0);
}

static void watch(const struct proxy *proxy, struct connection *connection)
{
    for (int side = 0; side < 2; side++) {
        uint32_t events = wanted_events(connection, side);
        if (events == connection->watched[side])
            continue;
        struct epoll_event event = { .events = events,
                                     .data.ptr = &connection->directions[side] };
        epoll_ctl(proxy->epoll, EPOLL_CTL_MOD, connection->fds[side], &event);
        connection->watched[side] = events;
    }
}

static void set_timer(const struct proxy *proxy)
{
    struct itimerspec when = { .it_value = { 0, 0 } };
    if (proxy->first) {
        when.it_value.tv_sec = proxy->first->due / 1000000000;
        when.it_value.tv_nsec = proxy->first->due % 1000000000;
    }
    timerfd_settime(proxy->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- chunks --------------------------------------------------------------- */

static void schedule(struct proxy *proxy, struct direction *direction, const char *data,
                     size_t size)
{
    struct chunk *chunk = malloc(sizeof *chunk + size);
    if (!chunk)
        die("chunk");
    *chunk = (struct chunk){ .direction = direction, .due = now() + proxy->delay, .size = size };
    if (size)
        memcpy(chunk->data, data, size);
    else
        direction->ended = 1;
    direction->under_way += size;
    direction->connection->chunks++;
    *proxy->last = chunk;
    proxy->last = &chunk->next;
    if (proxy->first == chunk)
        set_timer(proxy);
}

static void read_side(struct proxy *proxy, struct direction *direction)
{
    static char buffer[CHUNK_SIZE];
    while (!direction->ended && !direction->connection->broken
           && direction->under_way < UNDER_WAY_MAX) {
        ssize_t size = recv(direction->from, buffer, sizeof buffer, 0);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (size < 0)
            direction->connection->broken = 1;
        schedule(proxy, direction, buffer, size > 0 ? (size_t)size : 0);
        if (size < (ssize_t)sizeof buffer)
            return;
    }
}

static void drop_first(struct direction *direction)
{
    struct chunk *chunk = direction->first;
    direction->first = chunk->next;
    if (!direction->first)
        direction->last = &direction->first;
    direction->under_way -= chunk->size;
    free(chunk);
}

static int write_chunk(const struct direction *direction, struct chunk *chunk)
{
    while (chunk->done < chunk->size) {
        ssize_t size = send(direction->to, chunk->data + chunk->done, chunk->size - chunk->done,
                            MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
        chunk->done += (size_t)size;
    }
    return 1;
}

static void write_due(struct direction *direction)
{
    while (direction->first) {
        struct chunk *chunk = direction->first;
        int written = chunk->size ? write_chunk(direction, chunk) : 1;
        if (written == 0)
            return;
        if (written < 0)
            direction->connection->broken = 1;
        if (chunk->size == 0) {
            shutdown(direction->to, SHUT_WR);
            direction->connection->ends++;
        }
        drop_first(direction);
    }
}

static void release_due(struct proxy *proxy)
{
    int64_t time = now();
    while (proxy->first && proxy->first->due <= time) {
        struct chunk *chunk = proxy->first;
        struct direction *direction = chunk->direction;
        proxy->first = chunk->next;
        if (!proxy->first)
            proxy->last = &proxy->first;
        chunk->next = NULL;
        *direction->last = chunk;
        direction->last = &chunk->next;
        direction->connection->chunks--;
        write_due(direction);
        watch(proxy, direction->connection);
    }
    set_timer(proxy);
}

/* ---- connections ---------------------------------------------------------- */

static void prepare_socket(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void add_connection(struct proxy *proxy, int client, int server)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        die("connection");
    connection->fds[0] = client;
    connection->fds[1] = server;
    for (int side = 0; side < 2; side++) {
        struct direction *direction = &connection->directions[side];
        direction->connection = connection;
        direction->from = connection->fds[side];
        direction->to = connection->fds[1 - side];
        direction->last = &direction->first;
        prepare_socket(direction->from);
        connection->watched[side] = EPOLLIN;
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = direction };
        if (epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, direction->from, &event))
            die("epoll");
    }
    connection->next = proxy->connections;
    proxy->connections = connection;
}

static void accept_connection(struct proxy *proxy)
{
    int client = accept(proxy->listener, NULL, NULL);
    if (client < 0)
        return;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (server < 0 || connect(server, (struct sockaddr *)&proxy->target, sizeof proxy->target)) {
        if (server >= 0)
            close(server);
        close(client);
        return;
    }
    add_connection(proxy, client, server);
}

static int finished(const struct connection *connection)
{
    return connection->chunks == 0 && (connection->broken || connection->ends == 2);
}

static void free_connection(struct connection *connection)
{
    for (int side = 0; side < 2; side++) {
        while (connection->directions[side].first)
            drop_first(&connection->directions[side]);
        close(connection->fds[side]);
    }
    free(connection);
}

/* After a round of events: no event left points to what is freed here. */
static void sweep_connections(struct proxy *proxy)
{
    for (struct connection **at = &proxy->connections; *at;) {
        struct connection *connection = *at;
        if (finished(connection)) {
            *at = connection->next;
            free_connection(connection);
        } else {
            at = &connection->next;
        }
    }
}

/* ---- the program ---------------------------------------------------------- */

static void serve_event(struct proxy *proxy, const struct epoll_event *event)
{
    uint64_t expirations;
    if (event->data.ptr == &listener_mark) {
        accept_connection(proxy);
    } else if (event->data.ptr == &timer_mark) {
        if (read(proxy->timer, &expirations, sizeof expirations) > 0)
            release_due(proxy);
    } else {
        struct direction *in = event->data.ptr;
        struct connection *connection = in->connection;
        int side = (int)(in - connection->directions);
        if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            read_side(proxy, in);
        if (event->events & EPOLLOUT)
            write_due(&connection->directions[1 - side]);
        watch(proxy, connection);
    }
}

static void serve(struct proxy *proxy)
{
    struct epoll_event events[EVENTS];
    while (!stopping) {
        int count = epoll_wait(proxy->epoll, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            die("epoll");
        for (int i = 0; i < count; i++)
            serve_event(proxy, &events[i]);
        sweep_connections(proxy);
    }
}

static int listen_on(int port)
{
    int on = 1;
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on)
        || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 64)
        || getsockname(fd, (struct sockaddr *)&address, &size))
        die("listen");
    prepare_socket(fd);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void start(struct proxy *proxy, int listen_port, int target_port)
{
    proxy->last = &proxy->first;
    proxy->target = (struct sockaddr_in){ .sin_family = AF_INET,
                                          .sin_port = htons((uint16_t)target_port),
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    proxy->epoll = epoll_create1(EPOLL_CLOEXEC);
    proxy->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (proxy->epoll < 0 || proxy->timer < 0)
        die("epoll");
    proxy->listener = listen_on(listen_port);
    struct epoll_event listener = { .events = EPOLLIN, .data.ptr = &listener_mark };
    struct epoll_event timer = { .events = EPOLLIN, .data.ptr = &timer_mark };
    if (epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, proxy->listener, &listener)
        || epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, proxy->timer, &timer))
        die("epoll");
}

static int usage(int status)
{
    fputs("usage: delay-proxy --rtt-us MICROSECONDS --listen PORT --target PORT\n",
          status ? stderr : stdout);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "rtt-us", required_argument, NULL, 'r' },
                                             { "listen", required_argument, NULL, 'l' },
                                             { "target", required_argument, NULL, 't' },
                                             { "help", no_argument, NULL, 'h' },
                                             { NULL, 0, NULL, 0 } };
    struct proxy proxy = { .delay = -1 };
    int listen_port = -1, target_port = -1;
    for (int choice; (choice = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (choice) {
        case 'r': proxy.delay = atoll(optarg) * 500; break;
        case 'l': listen_port = atoi(optarg); break;
        case 't': target_port = atoi(optarg); break;
        case 'h': return usage(0);
        default: return usage(64);
        }
    }
    if (proxy.delay < 0 || listen_port < 0 || target_port <= 0 || optind != argc)
        return usage(64);
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    start(&proxy, listen_port, target_port);
    serve(&proxy);
    return 0;
}

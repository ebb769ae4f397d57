/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection at a time, a thread for each direction. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tests/integration/proxy.h"

/* last: its macro "fail" would hide a member of others */
#include <cmocka.h>

typedef struct direction {
    proxy *owner;
    int from;
    int to;
    atomic_int what;
} direction;

struct proxy {
    const char *server_host;
    int server_port;
    int listener;
    int port;
    atomic_int client;
    atomic_int server;
    atomic_int delay;
    pthread_t acceptor;
    direction ways[2]; /* to the server, to the client */
};

static void *forward(void *argument)
{
    static _Thread_local char data[65536];
    direction *way = argument;
    for (;;) {
        struct pollfd ready = { .fd = way->from, .events = POLLIN };
        if (poll(&ready, 1, -1) <= 0)
            break;
        int delay = atomic_load(&way->owner->delay);
        if (delay) /* what is sent in one go travels together */
            wb_clock_pause(WB_MILLISECOND, NULL);
        ssize_t size = recv(way->from, data, sizeof data, 0);
        if (size <= 0)
            break;
        if (delay)
            wb_clock_pause((delay - 1) * WB_MILLISECOND, NULL);
        if (atomic_load(&way->what) == PROXY_SWALLOW)
            continue;
        if (send(way->to, data, (size_t)size, MSG_NOSIGNAL) != size)
            break;
    }
    shutdown(way->from, SHUT_RDWR);
    shutdown(way->to, SHUT_RDWR);
    return NULL;
}

static int connect_server(const proxy *p)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_port = htons((uint16_t)p->server_port);
    inet_pton(AF_INET, p->server_host, &address.sin_addr);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void serve(proxy *p, int client)
{
    pthread_t threads[2];
    int on = 1;
    int server = connect_server(p);
    if (server >= 0) {
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        for (int i = 0; i < 2; i++)
            atomic_store(&p->ways[i].what, PROXY_PASS);
        p->ways[0].from = p->ways[1].to = client;
        p->ways[0].to = p->ways[1].from = server;
        atomic_store(&p->client, client);
        atomic_store(&p->server, server);
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, forward, &p->ways[i]);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        atomic_store(&p->client, -1);
        atomic_store(&p->server, -1);
        close(server);
    }
    close(client);
}

static void *accept_all(void *argument)
{
    proxy *p = argument;
    int client;
    while ((client = accept(p->listener, NULL, NULL)) >= 0)
        serve(p, client);
    return NULL;
}

proxy *proxy_start(const char *server_host, int server_port)
{
    proxy *p = calloc(1, sizeof *p);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    p->server_host = server_host;
    p->server_port = server_port;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(p->listener, 8), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&address, &size), 0);
    p->port = ntohs(address.sin_port);
    p->ways[0].owner = p->ways[1].owner = p;
    atomic_store(&p->client, -1);
    atomic_store(&p->server, -1);
    assert_int_equal(pthread_create(&p->acceptor, NULL, accept_all, p), 0);
    return p;
}

int proxy_port(const proxy *p)
{
    return p->port;
}

void proxy_set_delay(proxy *p, int milliseconds)
{
    atomic_store(&p->delay, milliseconds);
}

void proxy_to_server(proxy *p, int what)
{
    atomic_store(&p->ways[0].what, what);
}

void proxy_to_client(proxy *p, int what)
{
    atomic_store(&p->ways[1].what, what);
}

void proxy_tell_client(proxy *p, const void *bytes, size_t size)
{
    assert_int_equal(send(atomic_load(&p->client), bytes, size, MSG_NOSIGNAL), size);
}

void proxy_cut(proxy *p)
{
    int client = atomic_load(&p->client);
    int server = atomic_load(&p->server);
    if (client >= 0)
        shutdown(client, SHUT_RDWR);
    if (server >= 0)
        shutdown(server, SHUT_RDWR);
}

void proxy_await_end(const proxy *p)
{
    while (atomic_load(&p->client) >= 0)
        wb_clock_pause(WB_MILLISECOND, NULL);
}

void proxy_stop(proxy *p)
{
    shutdown(p->listener, SHUT_RDWR);
    proxy_cut(p);
    pthread_join(p->acceptor, NULL);
    close(p->listener);
    free(p);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay of the conformance kits: who waits for a connection, in whatever way, gets answers
 * through it, and hears of its end.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "conformance/relay.h"
#include "core/base/clock.h"

#define PATIENCE 10000 /* milliseconds */
#define KNOWN_BY UINT64_C(0xfeedbeef12345678)

/* ---- a server: each byte is answered by the next one ---------------------------------------- */

typedef struct server {
    int listener;
    uint16_t port;
    int connection;
    atomic_int heard;
    pthread_t thread;
} server;

static void *serve(void *argument)
{
    server *self = argument;
    const int fd = self->connection;
    char byte;
    while (recv(fd, &byte, 1, 0) == 1) {
        atomic_fetch_add(&self->heard, 1);
        byte++;
        if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
            break;
    }
    (void)close(fd);
    return NULL;
}

static void listens(server *self)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    *self = (server){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(self->listener, 1), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &size), 0);
    self->port = address.sin_port;
}

static void start_server(server *self)
{
    self->connection = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(self->connection >= 0);
    assert_int_equal(pthread_create(&self->thread, NULL, serve, self), 0);
}

/* ---- a client, as a plugin has one ---------------------------------------------------------- */

typedef enum { BY_READING, BY_POLL, BY_SELECT, BY_EPOLL, BY_EDGES, BY_ONE_SHOT, BY_TWO_NUMBERS, WAYS } way;

typedef struct client {
    way how;
    int fd;
    int epoll, same_epoll; /* or -1 */
} client;

static uint32_t events_of(way how)
{
    if (how == BY_EDGES)
        return EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    return how == BY_ONE_SHOT ? EPOLLIN | EPOLLONESHOT : EPOLLIN;
}

static void connect_to(client *self, const server *to, way how)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = to->port,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct epoll_event event = { .events = events_of(how), .data.u64 = KNOWN_BY };
    *self = (client){ .how = how, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .epoll = -1, .same_epoll = -1 };
    assert_int_equal(connect(self->fd, (struct sockaddr *)&address, sizeof address), 0);
    if (how < BY_EPOLL)
        return;
    assert_int_equal(fcntl(self->fd, F_SETFL, O_NONBLOCK), 0);
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (how == BY_TWO_NUMBERS) /* as tokio has it */
        self->same_epoll = fcntl(self->epoll, F_DUPFD_CLOEXEC, 0);
    assert_int_equal(epoll_ctl(self->epoll, EPOLL_CTL_ADD, self->fd, &event), 0);
}

static void leave(client *self)
{
    (void)close(self->fd);
    (void)close(self->epoll);
    (void)close(self->same_epoll);
}

static int wait_with_epoll(const client *self)
{
    struct epoll_event event;
    do {
        if (epoll_wait(self->same_epoll < 0 ? self->epoll : self->same_epoll, &event, 1, PATIENCE) != 1 ||
            event.data.u64 != KNOWN_BY)
            return 0;
    } while (!(event.events & (EPOLLIN | EPOLLHUP)));
    return 1;
}

static int wait_for(const client *self)
{
    struct pollfd poll_for = { .fd = self->fd, .events = POLLIN };
    struct timeval patience = { .tv_sec = PATIENCE / 1000 };
    fd_set select_for;
    FD_ZERO(&select_for);
    FD_SET(self->fd, &select_for);
    if (self->how == BY_POLL)
        return poll(&poll_for, 1, PATIENCE) == 1;
    if (self->how == BY_SELECT)
        return select(self->fd + 1, &select_for, NULL, NULL, &patience) == 1;
    return self->how == BY_READING || wait_with_epoll(self);
}

/* @return the answer, 0: the connection has ended, -1: nothing came. */
static int hear(const client *self)
{
    struct epoll_event again = { .events = events_of(self->how), .data.u64 = KNOWN_BY };
    for (int is_first = 1;; is_first = 0) {
        char byte = 0;
        /* who is told of edges has read all there is before it waits */
        if (!(is_first && self->how == BY_EDGES) && !wait_for(self))
            return -1;
        ssize_t size = recv(self->fd, &byte, 1, 0);
        if (self->how == BY_ONE_SHOT)
            assert_int_equal(epoll_ctl(self->epoll, EPOLL_CTL_MOD, self->fd, &again), 0);
        if (size >= 0 || errno != EAGAIN)
            return size == 1 ? byte : 0;
    }
}

static void say(const client *self, char byte)
{
    assert_int_equal(send(self->fd, &byte, 1, MSG_NOSIGNAL), 1);
}

static void asks_and_hears(const client *self, char byte)
{
    say(self, byte);
    assert_int_equal(hear(self), byte + 1);
}

/* ---- tests ---------------------------------------------------------------------------------- */

typedef struct scene {
    server server;
    client client;
    wb_wires before;
} scene;

static void set_up(scene *self, way how)
{
    listens(&self->server);
    wb_wires_remember(&self->before);
    connect_to(&self->client, &self->server, how);
    start_server(&self->server);
    self->before.there[self->server.connection] = 1; /* in this process, and no wire of a plugin */
}

static void clear(scene *self)
{
    leave(&self->client);
    assert_int_equal(pthread_join(self->server.thread, NULL), 0);
    (void)close(self->server.listener);
}

static void loses(way how, wb_loss loss, int heard)
{
    scene self;
    set_up(&self, how);
    asks_and_hears(&self.client, 'a');
    wb_relay *relay = wb_relay_start(&self.before);
    assert_non_null(relay);
    for (char byte = 'b'; byte < 'f'; byte++)
        asks_and_hears(&self.client, byte);
    wb_relay_arm(relay, loss, 1, NULL);
    asks_and_hears(&self.client, 'f');
    assert_false(wb_relay_has_struck(relay));
    say(&self.client, 'g');
    assert_int_equal(hear(&self.client), 0);
    assert_true(wb_relay_has_struck(relay));
    wb_relay_stop(relay);
    clear(&self);
    assert_int_equal(atomic_load(&self.server.heard), heard);
}

static void every_way_hears_answers_and_the_end(void **state)
{
    (void)state;
    for (way how = 0; how < WAYS; how++) {
        loses(how, WB_LOSE_REQUEST, 6);
        loses(how, WB_LOSE_REPLY, 7);
    }
}

static void *hear_first(void *argument)
{
    const client *self = argument;
    return (void *)(intptr_t)hear(self);
}

/* A runtime's thread waits all the time. */
static void who_waits_already_hears(void **state)
{
    (void)state;
    for (way how = BY_EPOLL; how < WAYS; how++) {
        scene self;
        pthread_t thread;
        void *heard;
        set_up(&self, how);
        assert_int_equal(pthread_create(&thread, NULL, hear_first, &self.client), 0);
        wb_relay *relay = wb_relay_start(&self.before);
        say(&self.client, 'a');
        assert_int_equal(pthread_join(thread, &heard), 0);
        assert_int_equal((intptr_t)heard, 'b');
        wb_relay_stop(relay);
        clear(&self);
    }
}

/* What has come before and was not read stays first. */
static void what_was_on_its_way_arrives(void **state)
{
    (void)state;
    for (way how = 0; how < WAYS; how++) {
        scene self;
        set_up(&self, how);
        say(&self.client, 'a');
        wb_relay *relay = wb_relay_start(&self.before);
        say(&self.client, 'm');
        assert_int_equal(hear(&self.client), 'b');
        assert_int_equal(hear(&self.client), 'n');
        wb_relay_stop(relay);
        clear(&self);
    }
}

static int try_to_connect(const server *to)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = to->port,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int is_connected = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    assert_true(is_connected || errno == ECONNREFUSED);
    (void)close(fd);
    return is_connected;
}

/* Who is quick enough to ask again would know what became of it. */
static void nobody_connects_anew_for_a_while(void **state)
{
    scene self;
    (void)state;
    set_up(&self, BY_POLL);
    wb_relay *relay = wb_relay_start(&self.before);
    wb_relay_keep_away(relay, 60 * WB_SECOND);
    wb_relay_arm(relay, WB_LOSE_REPLY, 0, NULL);
    assert_true(try_to_connect(&self.server));
    say(&self.client, 'a');
    assert_int_equal(hear(&self.client), 0);
    for (int i = 0; i < 100; i++)
        assert_false(try_to_connect(&self.server));
    wb_relay_stop(relay);
    assert_true(try_to_connect(&self.server));
    clear(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_hears_answers_and_the_end),
        cmocka_unit_test(who_waits_already_hears),
        cmocka_unit_test(what_was_on_its_way_arrives),
        cmocka_unit_test(nobody_connects_anew_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

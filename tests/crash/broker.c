/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/crash/broker.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static int reply_ok(amqp_rpc_reply_t reply, const char *what)
{
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return 1;
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) {
        fprintf(stderr, "%s: %s\n", what, amqp_error_string2(reply.library_error));
    } else if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
        const amqp_channel_close_t *close = reply.reply.decoded;
        fprintf(stderr, "%s: %.*s\n", what, (int)close->reply_text.len,
                (char *)close->reply_text.bytes);
    } else {
        fprintf(stderr, "%s: the broker closed the connection\n", what);
    }
    return 0;
}

int broker_ok(amqp_connection_state_t broker, const char *what)
{
    return reply_ok(amqp_get_rpc_reply(broker), what);
}

void broker_close(amqp_connection_state_t broker)
{
    if (!broker)
        return;
    amqp_connection_close(broker, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(broker);
}

amqp_connection_state_t broker_open(void)
{
    amqp_connection_state_t broker = amqp_new_connection();
    amqp_socket_t *socket = amqp_tcp_socket_new(broker);
    int port = atoi(setting("AMQP_PORT", "5672"));

    if (!socket || amqp_socket_open_noblock(socket, setting("AMQP_HOST", "127.0.0.1"), port,
                                            &(struct timeval){ 5, 0 }) != AMQP_STATUS_OK)
        goto out;
    amqp_set_rpc_timeout(broker, &(struct timeval){ 30, 0 });
    if (!reply_ok(amqp_login(broker, setting("AMQP_VHOST", "/"), 0, 131072, 0,
                             AMQP_SASL_METHOD_PLAIN, setting("AMQP_USER", "guest"),
                             setting("AMQP_PASSWORD", "guest")),
                  "login"))
        goto out;
    amqp_channel_open(broker, BROKER_CHANNEL);
    if (broker_ok(broker, "open channel"))
        return broker;
out:
    amqp_destroy_connection(broker);
    return NULL;
}

amqp_connection_state_t broker_open_within(int seconds)
{
    time_t end = time(NULL) + seconds;
    amqp_connection_state_t broker;
    while (!(broker = broker_open())) {
        if (time(NULL) >= end) {
            fprintf(stderr, "no broker for %d s\n", seconds);
            exit(1);
        }
        nanosleep(&(struct timespec){ 0, 100000000L }, NULL);
    }
    return broker;
}

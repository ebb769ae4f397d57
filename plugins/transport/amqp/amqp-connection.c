/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-connection.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SECONDS INT64_C(1000000000)
#define CLOSE_PATIENCE SECONDS
#define FRAME_MAX 131072
/* A quorum queue adds its count to the headers of what it delivers again, and does not
 * split them: a frame that was just small enough comes back larger. */
#define FRAME_GROWTH 4096

static struct timeval to_timeval(int64_t duration)
{
    return (struct timeval){ .tv_sec = (time_t)(duration / SECONDS),
                             .tv_usec = (suseconds_t)(duration % SECONDS / 1000) };
}

int wb_amqp_connection_fail(wb_amqp_connection *connection, int result, int cause,
                            const char *format, ...)
{
    va_list arguments;
    char text[sizeof connection->failure.text];
    if (connection->failure.result != WB_OK)
        return connection->failure.result;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return wb_amqp_failure_set(&connection->failure, result, cause, 0, "%s", text);
}

/* ---- connecting ------------------------------------------------------------------ */

static int file_problem(wb_amqp_connection *connection, const char *option, const char *path,
                        int status)
{
    (void)wb_amqp_failure_set(&connection->failure, WB_FATAL, WB_CAUSE_CONFIG, status,
                              "could not use %s = \"%s\": %s", option, path,
                              amqp_error_string2(status));
    return WB_FATAL;
}

static int set_up_tls(wb_amqp_connection *connection, amqp_socket_t *socket)
{
    const wb_amqp_config *config = connection->transport->config;
    int status = amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST);
    if (status != AMQP_STATUS_OK)
        return wb_amqp_map_status(&connection->failure, status, "ask for TLS 1.2");
    amqp_ssl_socket_set_verify_peer(socket, 1);
    amqp_ssl_socket_set_verify_hostname(socket, 1);
    status = amqp_ssl_socket_set_cacert(socket, config->tls_ca_file);
    if (status != AMQP_STATUS_OK)
        return file_problem(connection, "tls_ca_file", config->tls_ca_file, status);
    if (!config->tls_cert_file)
        return WB_OK;
    status = amqp_ssl_socket_set_key(socket, config->tls_cert_file, config->tls_key_file);
    if (status != AMQP_STATUS_OK)
        return file_problem(connection, "tls_cert_file", config->tls_cert_file, status);
    return WB_OK;
}

static int open_socket(wb_amqp_connection *connection)
{
    const wb_amqp_config *config = connection->transport->config;
    struct timeval timeout = to_timeval(config->connect_timeout);
    char doing[300];
    amqp_socket_t *socket = connection->tls ? amqp_ssl_socket_new(connection->state)
                                            : amqp_tcp_socket_new(connection->state);
    if (!socket)
        return wb_amqp_map_status(&connection->failure, AMQP_STATUS_NO_MEMORY, "make a socket");
    if (connection->tls && set_up_tls(connection, socket) != WB_OK)
        return connection->failure.result;
    int port = wb_amqp_config_port(config);
    (void)snprintf(doing, sizeof doing, "connect to \"%s\" port %d", config->host, port);
    int status = amqp_socket_open_noblock(socket, config->host, port, &timeout);
    if (status != AMQP_STATUS_OK)
        return wb_amqp_map_status(&connection->failure, status, doing);
    connection->fd = amqp_get_sockfd(connection->state);
    return WB_OK;
}

static amqp_table_entry_t flag(const char *name)
{
    return (amqp_table_entry_t){ amqp_cstring_bytes(name),
                                 { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 } };
}

static amqp_table_entry_t string(const char *name, const char *value)
{
    return (amqp_table_entry_t){
        amqp_cstring_bytes(name),
        { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value) }
    };
}

static int log_in(wb_amqp_connection *connection, const char *role)
{
    const wb_amqp_config *config = connection->transport->config;
    const char *endpoint = connection->transport->endpoint->name;
    char name[300];
    char doing[300];
    (void)snprintf(name, sizeof name, "waybill %s (%s)", endpoint, role);
    (void)snprintf(doing, sizeof doing, "log in to virtual host \"%s\" at \"%s\"", config->vhost,
                   config->host);
    amqp_table_entry_t able[] = { flag("connection.blocked"), flag("consumer_cancel_notify"),
                                  flag("basic.nack"), flag("publisher_confirms"),
                                  flag("authentication_failure_close") };
    amqp_table_entry_t entries[] = {
        string("product", "Waybill"),
        string("version", PACKAGE_VERSION),
        string("endpoint", endpoint),
        string("connection_name", name),
        { amqp_cstring_bytes("capabilities"),
          { .kind = AMQP_FIELD_KIND_TABLE,
            .value.table = { sizeof able / sizeof able[0], able } } },
    };
    amqp_table_t properties = { sizeof entries / sizeof entries[0], entries };
    struct timeval timeout = to_timeval(config->connect_timeout);
    (void)amqp_set_handshake_timeout(connection->state, &timeout);
    amqp_rpc_reply_t reply = amqp_login_with_properties(
        connection->state, config->vhost, 0, FRAME_MAX, (int)(config->heartbeat / SECONDS),
        &properties, AMQP_SASL_METHOD_PLAIN, config->user, config->password);
    return wb_amqp_map_login(&connection->failure, reply, doing);
}

/* From here on heartbeats are ours. The library would send its own between two halves
 * of a frame that we are writing, and would give up a connection that it has not
 * been asked about for a while. */
static int take_over(wb_amqp_connection *connection)
{
    amqp_connection_state_t state = connection->state;
    connection->heartbeat = amqp_get_heartbeat(state) * SECONDS;
    connection->frame_max = (size_t)amqp_get_frame_max(state);
    int status = amqp_tune_connection(state, amqp_get_channel_max(state),
                                      (int)connection->frame_max + FRAME_GROWTH, 0);
    if (status != AMQP_STATUS_OK)
        return wb_amqp_map_status(&connection->failure, status, "set up the connection");
    connection->sent_at = connection->received_at = connection->transport->host->now();
    connection->leftover = 1;
    connection->renews = 1;
    return WB_OK;
}

int wb_amqp_connection_open(wb_amqp_connection *connection, wb_transport *transport,
                            wb_amqp_group *group, const char *role)
{
    connection->transport = transport;
    connection->group = group;
    connection->fd = -1;
    connection->tls = wb_amqp_config_uses_tls(transport->config);
    connection->state = amqp_new_connection();
    if (!connection->state)
        return wb_amqp_map_status(&connection->failure, AMQP_STATUS_NO_MEMORY, "connect");
    if (open_socket(connection) != WB_OK || log_in(connection, role) != WB_OK)
        return connection->failure.result;
    return take_over(connection);
}

/* ---- closing --------------------------------------------------------------------- */

/* When the broker has answered, it has given back what was unacknowledged. */
static void say_goodbye(wb_amqp_connection *connection)
{
    amqp_connection_close_t close = { .reply_code = AMQP_REPLY_SUCCESS,
                                      .reply_text = amqp_cstring_bytes("closed") };
    connection->deadline = connection->transport->host->now() + CLOSE_PATIENCE;
    connection->renews = 0;
    connection->on_frame = NULL;
    connection->before_wait = NULL;
    connection->paused = connection->gated = 0;
    (void)wb_amqp_rpc(connection, 0, AMQP_CONNECTION_CLOSE_METHOD, &close,
                      AMQP_CONNECTION_CLOSE_OK_METHOD);
}

void wb_amqp_connection_close(wb_amqp_connection *connection)
{
    if (connection->state) {
        /* A broker that blocks publishing does not read: it would not answer. */
        if (connection->fd >= 0 && connection->failure.result == WB_OK && !connection->blocked)
            say_goodbye(connection);
        /* The library ends TLS with a message of its own, and would wait for the broker
         * to take it. */
        if (connection->fd >= 0)
            (void)shutdown(connection->fd, SHUT_RDWR);
        (void)amqp_destroy_connection(connection->state);
    }
    free(connection->out);
    memset(connection, 0, sizeof *connection);
}

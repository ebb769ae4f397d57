/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-connection.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "plugins/common/dial.h"
#include "plugins/transport/amqp/amqp-hosts.h"
#include "plugins/transport/amqp/amqp-tls.h"

#define SECONDS INT64_C(1000000000)
#define CLOSE_PATIENCE SECONDS
/* To ask why nobody is there. */
#define DIAL_PATIENCE SECONDS
#define CLOSE_OK_SIZE 12
#define FRAME_MAX 131072
/* The broker adds to headers and does not split them, so a frame that was just small
 * enough comes back larger: by a count on redelivery, by the whole list of its routes (x-death)
 * when it was dead-lettered on its way. And others may have negotiated more than we. */
#define FRAME_RECEIVED_MAX (2 * FRAME_MAX)

/* Of one step of connecting. */
static struct timeval patience(const wb_amqp_connection *connection)
{
    int64_t duration = connection->transport->config->connect_timeout;
    if (connection->deadline) {
        int64_t left = connection->deadline - connection->transport->host->now();
        duration = left < duration ? left : duration;
    }
    if (duration < SECONDS / 1000)
        duration = SECONDS / 1000;
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

#define REASON_SIZE 160

static int is_of_tls(int status)
{
    return status == AMQP_STATUS_SSL_ERROR || status == AMQP_STATUS_SSL_CONNECTION_FAILED ||
           status == AMQP_STATUS_SSL_PEER_VERIFY_FAILED;
}

/* What stands behind a status, asked of whoever knows. @return NULL: nobody does. */
static const char *find_reason(const wb_amqp_connection *connection, const wb_amqp_host *host, int status,
                               char reason[REASON_SIZE])
{
    const int64_t timeout = connection->transport->config->connect_timeout;
    const int64_t patience = timeout < DIAL_PATIENCE ? timeout : DIAL_PATIENCE;
    int is_known = 0;
    if (is_of_tls(status))
        is_known = wb_amqp_tls_reason(reason, REASON_SIZE);
    else if (status == AMQP_STATUS_SOCKET_ERROR || status == AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED)
        is_known = wb_common_dial(host->name, host->port, patience, reason, REASON_SIZE);
    return is_known ? reason : NULL;
}

static int file_problem(wb_amqp_connection *connection, const char *option, const char *path,
                        int status)
{
    char reason[REASON_SIZE];
    (void)wb_amqp_failure_set(&connection->failure, WB_FATAL, WB_CAUSE_CONFIG, status,
                              "%s = \"%s\" cannot be used: %s", option, path,
                              wb_amqp_tls_reason(reason, sizeof reason) ? reason : amqp_error_string2(status));
    return WB_FATAL;
}

static int set_up_tls(wb_amqp_connection *connection, amqp_socket_t *socket)
{
    const wb_amqp_config *config = connection->transport->config;
    wb_amqp_tls_forget();
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

int wb_amqp_connection_try_tls(wb_transport *transport, wb_error *error)
{
    const wb_host *host = transport->host;
    wb_amqp_connection connection = { .transport = transport, .state = amqp_new_connection(), .fd = -1 };
    amqp_socket_t *socket = connection.state ? amqp_ssl_socket_new(connection.state) : NULL;
    int result = WB_OK;
    if (!socket)
        result = host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    else if (set_up_tls(&connection, socket) != WB_OK)
        result = host->fail(host, error, connection.failure.result, connection.failure.cause, connection.failure.code, "%s",
                            connection.failure.text);
    if (connection.state)
        (void)amqp_destroy_connection(connection.state);
    return result;
}

static int open_socket(wb_amqp_connection *connection, const wb_amqp_host *host)
{
    struct timeval timeout = patience(connection);
    char doing[300], reason[REASON_SIZE];
    amqp_socket_t *socket = connection->tls ? amqp_ssl_socket_new(connection->state)
                                            : amqp_tcp_socket_new(connection->state);
    if (!socket)
        return wb_amqp_map_status(&connection->failure, AMQP_STATUS_NO_MEMORY, "make a socket");
    if (connection->tls && set_up_tls(connection, socket) != WB_OK)
        return connection->failure.result;
    (void)snprintf(doing, sizeof doing, "connect to \"%.255s\" port %d", host->name, host->port);
    int status = amqp_socket_open_noblock(socket, host->name, host->port, &timeout);
    if (status != AMQP_STATUS_OK)
        return wb_amqp_map_status_because(&connection->failure, status, doing,
                                          find_reason(connection, host, status, reason));
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

static amqp_rpc_reply_t send_login(wb_amqp_connection *connection, const amqp_table_t *properties)
{
    const wb_amqp_config *config = connection->transport->config;
    int heartbeat = (int)(config->heartbeat / SECONDS);
    /* The library takes no empty identity, the broker looks at the certificate alone. */
    if (config->sasl == WB_AMQP_SASL_EXTERNAL)
        return amqp_login_with_properties(connection->state, config->vhost, 0, FRAME_MAX, heartbeat,
                                          properties, AMQP_SASL_METHOD_EXTERNAL, "certificate");
    return amqp_login_with_properties(connection->state, config->vhost, 0, FRAME_MAX, heartbeat,
                                      properties, AMQP_SASL_METHOD_PLAIN, config->user,
                                      config->password);
}

/* With TLS 1.3 a certificate of ours that is missing or not trusted ends a connection that
 * stands already; the library does not always see that it was TLS that ended it. */
static int was_hung_up(const amqp_rpc_reply_t *reply)
{
    return reply->reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
           (reply->library_error == AMQP_STATUS_CONNECTION_CLOSED ||
            reply->library_error == AMQP_STATUS_SOCKET_ERROR);
}

static int log_in(wb_amqp_connection *connection, const wb_amqp_host *host, const char *role)
{
    const wb_amqp_config *config = connection->transport->config;
    const char *endpoint = connection->transport->endpoint->name;
    char name[300];
    char doing[600], reason[REASON_SIZE];
    (void)snprintf(name, sizeof name, "waybill %s (%s)", endpoint, role);
    (void)snprintf(doing, sizeof doing, "log in to virtual host \"%.255s\" at \"%.255s\"", config->vhost,
                   host->name);
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
    struct timeval timeout = patience(connection);
    (void)amqp_set_handshake_timeout(connection->state, &timeout);
    amqp_rpc_reply_t reply = send_login(connection, &properties);
    if (connection->tls && was_hung_up(&reply))
        reply.library_error = AMQP_STATUS_SSL_ERROR;
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && is_of_tls(reply.library_error))
        return wb_amqp_map_status_because(&connection->failure, reply.library_error, doing,
                                          find_reason(connection, host, reply.library_error, reason));
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
                                      FRAME_RECEIVED_MAX, 0);
    if (status != AMQP_STATUS_OK)
        return wb_amqp_map_status(&connection->failure, status, "set up the connection");
    connection->sent_at = connection->received_at = connection->transport->host->now();
    connection->leftover = 1;
    connection->renews = 1;
    return WB_OK;
}

static int try_host(wb_amqp_connection *connection, const wb_amqp_host *host, const char *role)
{
    connection->state = amqp_new_connection();
    if (!connection->state)
        return wb_amqp_map_status(&connection->failure, AMQP_STATUS_NO_MEMORY, "connect");
    if (open_socket(connection, host) != WB_OK || log_in(connection, host, role) != WB_OK)
        return connection->failure.result;
    return take_over(connection);
}

/* Another node may do what this one cannot; what it says of user and virtual host, all say. */
static int may_try_another(const wb_amqp_connection *connection)
{
    const wb_amqp_failure *failure = &connection->failure;
    return failure->result == WB_NOT_CONNECTED ||
           failure->code == AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED ||
           failure->code == AMQP_STATUS_SSL_PEER_VERIFY_FAILED;
}

static void forget_host(wb_amqp_connection *connection)
{
    /* without waiting for the end of TLS */
    if (connection->state && connection->fd >= 0)
        (void)shutdown(connection->fd, SHUT_RDWR);
    if (connection->state)
        (void)amqp_destroy_connection(connection->state);
    connection->state = NULL;
    connection->fd = -1;
    connection->failure = (wb_amqp_failure){ 0 };
}

/* Of one round: the last failure of a node that may come back, and of one that is not trusted. */
struct round {
    wb_amqp_failure away, untrusted;
};

static void note_failure(struct round *round, const wb_amqp_failure *failure)
{
    *(failure->result == WB_NOT_CONNECTED ? &round->away : &round->untrusted) = *failure;
}

/* While one node may come back the endpoint waits, in whatever order they were asked; what
 * somebody has to mend at another is said as well. */
static int end_round(wb_amqp_connection *connection, const struct round *round)
{
    const wb_amqp_failure *away = &round->away;
    if (!away->result || !round->untrusted.result)
        return connection->failure.result;
    return wb_amqp_failure_set(&connection->failure, away->result, away->cause, away->code,
                               "%.230s; and of another host: %s", away->text, round->untrusted.text);
}

int wb_amqp_connection_open(wb_amqp_connection *connection, wb_transport *transport,
                            wb_amqp_group *group, const char *role)
{
    struct round round = { 0 };
    wb_amqp_hosts hosts;
    connection->transport = transport;
    connection->group = group;
    connection->fd = -1;
    connection->tls = wb_amqp_config_uses_tls(transport->config);
    (void)wb_amqp_hosts_read(transport->config, &hosts);
    wb_amqp_hosts_shuffle(&hosts);
    for (size_t i = 0; i < hosts.count; i++) {
        if (i > 0)
            forget_host(connection);
        if (try_host(connection, &hosts.list[i], role) == WB_OK || !may_try_another(connection))
            return connection->failure.result;
        note_failure(&round, &connection->failure);
    }
    return end_round(connection, &round);
}

/* ---- closing --------------------------------------------------------------------- */

static int is_close_ok(const unsigned char *end)
{
    static const unsigned char frame[] = { 1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 51, AMQP_FRAME_END };
    return memcmp(end - CLOSE_OK_SIZE, frame, CLOSE_OK_SIZE) == 0;
}

/* What arrives is thrown away, past the library. With TLS nobody can tell when the answer
 * is there: it is given its time. */
static void read_over(const wb_amqp_connection *connection)
{
    unsigned char data[16384];
    size_t kept = 0;
    for (;;) {
        int64_t left = connection->deadline - connection->transport->host->now();
        struct pollfd fd = { .fd = connection->fd, .events = POLLIN };
        if (left <= 0 || poll(&fd, 1, (int)(left / 1000000) + 1) <= 0)
            return;
        ssize_t size = recv(connection->fd, data + kept, sizeof data - kept, MSG_DONTWAIT);
        if (size <= 0)
            return;
        kept += (size_t)size;
        if (kept < CLOSE_OK_SIZE)
            continue;
        if (is_close_ok(data + kept))
            return;
        memmove(data, data + kept - CLOSE_OK_SIZE, CLOSE_OK_SIZE);
        kept = CLOSE_OK_SIZE;
    }
}

void wb_amqp_connection_part(wb_amqp_connection *connection)
{
    amqp_connection_close_t close = { .reply_code = AMQP_REPLY_SUCCESS,
                                      .reply_text = amqp_cstring_bytes("closed") };
    connection->deadline = connection->transport->host->now() + CLOSE_PATIENCE;
    wb_amqp_put_method(connection, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
    if (wb_amqp_flush(connection) == WB_OK)
        read_over(connection);
}

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
            connection->deaf ? wb_amqp_connection_part(connection) : say_goodbye(connection);
        /* The library ends TLS with a message of its own, and would wait for the broker
         * to take it. */
        if (connection->fd >= 0)
            (void)shutdown(connection->fd, SHUT_RDWR);
        (void)amqp_destroy_connection(connection->state);
    }
    free(connection->out);
    memset(connection, 0, sizeof *connection);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport that receives nothing and forgets what it is given: the least a transport
 * can be, as a start for a real one. Comments say what a real one does in each place.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <waybill/sys/plugin.h>
#include <waybill/sys/transport.h>

/* ---- options: the host fills this struct from the table below ------------- */

typedef struct null_config {
    int32_t announce;
    int64_t longest_wait;
} null_config;

static const wb_option options[] = {
    { .name = "announce",
      .type = WB_OPTION_BOOLEAN,
      .offset = offsetof(null_config, announce),
      .default_text = "true",
      .since = "0.1",
      .summary = "write a log line for each message that is forgotten" },
    { .name = "longest_wait",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(null_config, longest_wait),
      .default_text = "1s",
      .minimum = INT64_C(1000000),
      .maximum = INT64_C(60000000000),
      .since = "0.1",
      .summary = "how long to sleep at a stretch while there are no messages" },
};

/* ---- instance and session -------------------------------------------------- */

struct wb_transport {
    const wb_host *host;
    const wb_endpoint_info *endpoint;
    const null_config *config;
};

struct wb_transport_session {
    wb_transport *transport;
    int wake; /* eventfd: interrupt() may write it from any thread */
    int is_stopped;
};

static int null_create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                       wb_transport **ret_transport, wb_error *error)
{
    wb_transport *transport = (wb_transport *)calloc(1, sizeof *transport);
    if (!transport)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, ENOMEM, "out of memory");
    transport->host = host;
    transport->endpoint = endpoint;
    transport->config = (const null_config *)config;
    *ret_transport = transport;
    return WB_OK;
}

static void null_destroy(wb_transport *transport)
{
    free(transport);
}

/* A real transport connects here, and makes or checks its queues. */
static int null_install(wb_transport *transport, wb_error *error)
{
    (void)transport;
    (void)error;
    return WB_OK;
}

static int null_verify(wb_transport *transport, wb_error *error)
{
    (void)transport;
    (void)error;
    return WB_OK;
}

/* A real transport says what its broker does to a message that comes back again and again, or
 * that it cannot tell. Who forgets all messages drops none of them. */
static int null_limits(wb_transport *transport, wb_transport_limits *limits, wb_error *error)
{
    (void)transport;
    (void)error;
    limits->delivery_limit = 0;
    return WB_OK;
}

/* What fails here and below would fail for every message: the cause says that it is the
 * server's fault, or the machine's, so that the host waits and blames no message. */
static int null_open(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                     wb_transport_session **ret_session, wb_error *error)
{
    const wb_host *host = transport->host;
    (void)purpose;
    (void)prefetch;
    wb_transport_session *session = (wb_transport_session *)calloc(1, sizeof *session);
    if (!session)
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, ENOMEM, "out of memory");
    session->transport = transport;
    session->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session->wake < 0) {
        int code = errno;
        free(session);
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, code,
                          "could not make an eventfd");
    }
    *ret_session = session;
    return WB_OK;
}

static void null_close(wb_transport_session *session)
{
    close(session->wake);
    free(session);
}

/* ---- receiving -------------------------------------------------------------- */

static void forget_wake(wb_transport_session *session)
{
    uint64_t count;
    /* nothing to read: another wake-up was already forgotten */
    if (read(session->wake, &count, sizeof count) < 0)
        return;
}

/* @return whether it was woken. */
static int wait_a_while(wb_transport_session *session, int64_t deadline)
{
    const wb_transport *transport = session->transport;
    int64_t wait = deadline - transport->host->now();
    struct pollfd wake = { .fd = session->wake, .events = POLLIN };
    if (wait > transport->config->longest_wait)
        wait = transport->config->longest_wait;
    /* rounded up: a wait of 0 ms would be repeated until the last millisecond is over */
    return poll(&wake, 1, wait > 0 ? (int)((wait + 999999) / 1000000) : 0) > 0;
}

/* A real transport returns what is there, with no more headers than the endpoint takes and with
 * its whole body; this one waits until the deadline, unless it was told to stop. */
static int null_receive(wb_transport_session *session, int64_t deadline,
                        const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                        wb_error *error)
{
    (void)ret_messages;
    (void)max;
    (void)error;
    *ret_count = 0;
    if (session->is_stopped)
        return WB_OK;
    do {
        if (wait_a_while(session, deadline)) {
            forget_wake(session);
            break;
        }
    } while (session->transport->host->now() < deadline);
    return WB_OK;
}

/* A real transport asks its broker for no more; receive() still returns what has come. One that
 * reads ahead also has release_prefetched(). */
static int null_stop_receiving(wb_transport_session *session, wb_error *error)
{
    (void)error;
    session->is_stopped = 1;
    return WB_OK;
}

static int null_settle(wb_transport_session *session, const wb_incoming *const *messages,
                       size_t count, wb_error *error)
{
    (void)session;
    (void)messages;
    (void)count;
    (void)error;
    return WB_OK;
}

static void null_interrupt(wb_transport_session *session)
{
    uint64_t one = 1;
    /* a full counter already wakes the reader */
    if (write(session->wake, &one, sizeof one) < 0)
        return;
}

/* ---- sending ----------------------------------------------------------------- */

static void announce(const wb_transport *transport, const wb_operation *operation)
{
    const wb_field fields[] = { { "destination", operation->destination } };
    if (transport->config->announce)
        transport->host->log(transport->host, WB_LOG_INFO, "message forgotten", fields, 1);
}

/* A real transport looks at names before they become arguments of a protocol (one that cannot be
 * is this operation's WB_REJECT, and no trouble of the session), writes all operations, then
 * waits once for the confirmations. A result is WB_OK only when the broker said that the message
 * is durable. */
static int null_send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                     int64_t deadline, wb_error *error)
{
    (void)deadline;
    (void)error;
    for (size_t i = 0; i < count; i++) {
        announce(session->transport, operations[i]);
        operations[i]->result = WB_OK;
    }
    return WB_OK;
}

/* ---- descriptor ---------------------------------------------------------------- */

static const wb_transport_ops ops = {
    .struct_size = sizeof ops,
    .create = null_create,
    .destroy = null_destroy,
    .install = null_install,
    .verify = null_verify,
    .open = null_open,
    .close = null_close,
    .receive = null_receive,
    .acknowledge = null_settle,
    .give_back = null_settle,
    .send = null_send,
    .interrupt = null_interrupt,
    .limits = null_limits,
    .stop_receiving = null_stop_receiving,
};

/* Capabilities are promises: declare a mode only when it is kept. */
static const wb_plugin descriptor = {
    .struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .kind = WB_PLUGIN_TRANSPORT,
    .name = "null",
    .version = "0.1",
    .summary = "receives nothing and forgets what it is given",
    .capabilities = WB_CAP_MODE_NONE,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_stride = sizeof(wb_option),
    .config_size = sizeof(null_config),
    .ops = &ops,
};

WB_PLUGIN(null, descriptor)

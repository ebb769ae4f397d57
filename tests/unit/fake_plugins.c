/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/fake_plugins.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/error.h"

#define NAP (2 * WB_MILLISECOND)

struct wb_transport {
    fake *told;
    const wb_host *host;
};

struct wb_transport_session {
    wb_transport *transport;
    int number;
    atomic_int interrupted;
};

struct wb_persistence {
    fake *told;
};

struct wb_storage_session {
    fake *told;
};

atomic_int fake_threads = -1;
const atomic_int *fake_no_threads;
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    if (fake_threads == 0 || (fake_no_threads && *fake_no_threads))
        return EAGAIN;
    if (fake_threads > 0)
        fake_threads--;
    return __real_pthread_create(thread, attributes, run, argument);
}

static int fail_in(const wb_transport *transport, const char *name, wb_error *error)
{
    int cause = transport->told->cause;
    return transport->host->fail(transport->host, error, WB_FATAL, cause ? cause : WB_CAUSE_MISSING, 0,
                                 "told to fail in %s", name);
}

static int meet(const wb_transport *transport, unsigned call, const char *name, wb_error *error)
{
    while (transport->told->hangs & call)
        wb_clock_pause(NAP, NULL);
    return transport->told->fatal & call ? fail_in(transport, name, error) : WB_OK;
}

/* ---- transport --------------------------------------------------------------------------- */

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    fake *told = (fake *)(uintptr_t)config;
    const wb_transport probe = { told, host };
    int r = meet(&probe, FAKE_CREATE, "create", error);
    (void)endpoint;
    if (r != WB_OK)
        return r;
    *ret_transport = malloc(sizeof **ret_transport);
    **ret_transport = probe;
    told->instances++;
    return WB_OK;
}

static void destroy(wb_transport *transport)
{
    (void)meet(transport, FAKE_DESTROY, "destroy", NULL);
    transport->told->instances--;
    free(transport);
}

static int install(wb_transport *transport, wb_error *error)
{
    return meet(transport, FAKE_INSTALL, "install", error);
}

static int verify(wb_transport *transport, wb_error *error)
{
    return meet(transport, FAKE_VERIFY, "verify", error);
}

static int limits(wb_transport *transport, wb_transport_limits *answer, wb_error *error)
{
    answer->delivery_limit = transport->told->limit;
    answer->flags = transport->told->limit_flags;
    return meet(transport, FAKE_LIMITS, "limits", error);
}

static int open_session(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                        wb_transport_session **ret_session, wb_error *error)
{
    (void)prefetch;
    int r = meet(transport, FAKE_OPEN, "open", error);
    if (r != WB_OK)
        return r;
    wb_transport_session *session = malloc(sizeof *session);
    *session = (wb_transport_session){ .transport = transport };
    if (purpose & WB_SESSION_RECEIVE)
        session->number = ++transport->told->opened;
    transport->told->sessions++;
    *ret_session = session;
    return WB_OK;
}

static void close_session(wb_transport_session *session)
{
    session->transport->told->sessions--;
    free(session);
}

static int is_of(int number, const wb_transport_session *session)
{
    return number == 0 || number == session->number;
}

static int receive(wb_transport_session *session, int64_t deadline, const wb_incoming **ret_messages,
                   size_t max, size_t *ret_count, wb_error *error)
{
    fake *told = session->transport->told;
    (void)ret_messages, (void)max;
    *ret_count = 0;
    while (!atomic_exchange(&session->interrupted, 0) && wb_clock_monotonic() < deadline) {
        while (is_of(told->hangs_in, session) && (told->hangs & FAKE_RECEIVE))
            wb_clock_pause(NAP, NULL);
        if (is_of(told->fatal_in, session) && (told->fatal & FAKE_RECEIVE))
            return fail_in(session->transport, "receive", error);
        const int full = told->is_full;
        wb_clock_pause(full * WB_MILLISECOND, NULL);
        if (full)
            return session->transport->host->fail(session->transport->host, error, WB_RETRY, WB_CAUSE_SERVER, 0, "told to be full");
        told->received++;
        wb_clock_pause(NAP, NULL);
    }
    return WB_OK;
}

static int depth(wb_transport *transport, wb_transport_depth *answer, wb_error *error)
{
    answer->messages = (uint64_t)transport->told->waiting;
    return meet(transport, FAKE_DEPTH, "depth", error);
}

static void interrupt(wb_transport_session *session)
{
    session->interrupted = 1;
}

static const wb_transport_ops transport_ops = {
    .struct_size = sizeof transport_ops,
    .create = create,
    .destroy = destroy,
    .install = install,
    .verify = verify,
    .open = open_session,
    .close = close_session,
    .receive = receive,
    .interrupt = interrupt,
    .limits = limits,
    .depth = depth,
};

static const wb_plugin transport_plugin = { .name = "fake", .ops = &transport_ops };

/* ---- persistence ------------------------------------------------------------------------- */

static int create_storage(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                          wb_persistence **ret_persistence, wb_error *error)
{
    (void)host, (void)endpoint, (void)error;
    *ret_persistence = malloc(sizeof **ret_persistence);
    (*ret_persistence)->told = (fake *)(uintptr_t)config;
    (*ret_persistence)->told->instances++;
    return WB_OK;
}

static void destroy_storage(wb_persistence *persistence)
{
    persistence->told->instances--;
    free(persistence);
}

static int find_tables(wb_persistence *persistence, wb_error *error)
{
    if (!(persistence->told->fatal & FAKE_TABLES))
        return WB_OK;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_MISSING, 0, "told to fail in tables");
}

static int open_storage(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    fake *told = persistence->told;
    (void)error;
    told->storage_opened++;
    while (told->storage_hangs)
        wb_clock_pause(NAP, NULL);
    *ret_session = malloc(sizeof **ret_session);
    (*ret_session)->told = told;
    told->sessions++;
    return WB_OK;
}

static void close_storage(wb_storage_session *session)
{
    session->told->sessions--;
    free(session);
}

static int sweep(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit,
                 void *argument, wb_error *error)
{
    (void)session, (void)before, (void)limit, (void)visit, (void)argument, (void)error;
    return WB_OK;
}

static int clean_up(wb_storage_session *session, uint64_t before, size_t limit, size_t *ret_deleted,
                    wb_error *error)
{
    (void)before, (void)limit, (void)error;
    session->told->cleaned++;
    *ret_deleted = 0;
    return WB_OK;
}

static const wb_persistence_ops persistence_ops = {
    .struct_size = sizeof persistence_ops,
    .create = create_storage,
    .destroy = destroy_storage,
    .install = find_tables,
    .verify = find_tables,
    .open = open_storage,
    .close = close_storage,
    .sweep = sweep,
    .clean_up = clean_up,
};

static const wb_plugin persistence_plugin = { .name = "fake", .ops = &persistence_ops };

/* ---- endpoint ---------------------------------------------------------------------------- */

void fake_setup(fake *f, wb_endpoint_setup *setup, const char *name, unsigned workers, int outbox)
{
    memset(f, 0, sizeof *f);
    f->config = (wb_endpoint_config){
        .name = name,
        .concurrency = workers,
        .batch_max = 10,
        .body_max = 1024,
        .shutdown_timeout = 30 * WB_SECOND,
        .outbox = { .enabled = outbox, .retention = WB_SECOND, .cleanup_interval = WB_MILLISECOND,
                    .sweep_after = WB_SECOND },
        .recoverability = { .immediate_retries = 5, .error_queue = "error" },
    };
    *setup = (wb_endpoint_setup){
        .config = &f->config,
        .transport = &transport_plugin,
        .transport_ops = &transport_ops,
        .transport_config = f,
        .plan = { .mode = WB_MODE_RECEIVE_ONLY, .outbox = outbox, .immediate_retries = 5 },
        .info = { .struct_size = sizeof(wb_endpoint_info), .name = name, .error_queue = "error" },
        .is_ready = 1,
    };
    if (!outbox)
        return;
    setup->persistence = &persistence_plugin;
    setup->persistence_ops = &persistence_ops;
    setup->persistence_config = f;
}

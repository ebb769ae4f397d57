/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/removal.h"

#include <inttypes.h>
#include <stdio.h>

#include <waybill/sys/failed.h>

#include "core/base/crash.h"
#include "core/endpoint/backlog.h"
#include "core/endpoint/notes.h"

const char *wb_removal_lacks(const wb_endpoint_setup *setup, char *text, size_t size)
{
    const wb_plugin *lacks = NULL;
    if (!(setup->transport->capabilities & WB_CAP_UNINSTALL))
        lacks = setup->transport;
    else if (setup->persistence && !(setup->persistence->capabilities & WB_CAP_REMOVE_TABLES))
        lacks = setup->persistence;
    else if (setup->store && !(setup->store->capabilities & WB_CAP_REMOVE_TABLES))
        lacks = setup->store;
    if (!lacks)
        return NULL;
    (void)snprintf(text, size, "%s \"%s\"", lacks == setup->transport ? "transport" : "persistence", lacks->name);
    return text;
}

/* ---- rows --------------------------------------------------------------------------------- */

static int count_one(void *count, const wb_delayed *message)
{
    (void)message;
    (*(uint64_t *)count)++;
    return WB_OK;
}

/* An endpoint that never delayed has no table. */
static int count_delayed(const wb_pipeline *p, wb_storage_session *storage, wb_remains *remains, wb_error *error)
{
    const wb_delayed_filter filter = { .struct_size = sizeof filter };
    int r = p->persistence_ops->delayed->list(storage, &filter, count_one, &remains->delayed, error);
    return r != WB_OK && error->cause == WB_CAUSE_MISSING ? WB_OK : r;
}

static int see_row(void *count, const wb_written *row)
{
    (void)row;
    *(uint64_t *)count = 1;
    return WB_OK;
}

/* Of a persistence that does not count them. Those that wait for another try are not given out, but the highest number tells
 * of them. */
static int look_for_written(const wb_pipeline *p, wb_storage_session *storage, wb_remains *remains, wb_error *error)
{
    const wb_written_ops *ops = p->persistence_ops->written;
    wb_written_fetch fetch = { .struct_size = sizeof fetch, .limit = 1, .form = INT64_MAX, .wants_last = 1 };
    int is_installed = 0;
    int r = ops->is_installed(storage, &is_installed, error);
    if (r != WB_OK || !is_installed)
        return r;
    r = ops->fetch(storage, &fetch, see_row, &remains->written, error);
    if (r == WB_OK && fetch.last)
        remains->written = 1;
    return r;
}

static int count_written(const wb_pipeline *p, wb_storage_session *storage, wb_remains *remains, wb_error *error)
{
    int64_t count;
    int r = wb_backlog_count_written(p, storage, SIZE_MAX, &count, error);
    if (r != WB_OK || count >= 0) {
        remains->written = r == WB_OK ? (uint64_t)count : 0;
        return r;
    }
    return look_for_written(p, storage, remains, error);
}

static int count_failure(void *count, const wb_failed *failed)
{
    (void)failed;
    return ++*(uint64_t *)count < WB_REMAINS_FAILED_MAX ? WB_OK : WB_REJECT;
}

/* Those that somebody has still to see to, or to hear of. An endpoint that never kept any has no table. */
static int count_failed(const wb_pipeline *p, wb_storage_session *storage, wb_remains *remains, wb_error *error)
{
    const wb_failed_ops *ops = p->persistence_ops->interface(storage, WB_FAILED_INTERFACE);
    int r = WB_OK;
    for (int32_t status = WB_FAILED_WAITS; ops && r == WB_OK && status <= WB_FAILED_RETRYING; status++) {
        const wb_failed_filter filter = { .struct_size = sizeof filter, .status = status };
        r = ops->list(storage, &filter, count_failure, &remains->failed, error);
    }
    return remains->failed >= WB_REMAINS_FAILED_MAX || (r != WB_OK && error->cause == WB_CAUSE_MISSING) ? WB_OK : r;
}

static int count_rows(const wb_endpoint_setup *setup, const wb_pipeline *p, wb_storage_session *storage, wb_remains *remains,
                      wb_error *error)
{
    const uint64_t capabilities = setup->persistence->capabilities;
    int r = capabilities & WB_CAP_OUTBOX ? wb_backlog_count_work(p, storage, &remains->pending, error) : WB_OK;
    if (r == WB_OK && (capabilities & WB_CAP_DELAY_STORE))
        r = count_delayed(p, storage, remains, error);
    if (r == WB_OK && (capabilities & WB_CAP_WRITTEN))
        r = count_written(p, storage, remains, error);
    if (r == WB_OK && (capabilities & WB_CAP_FAILED))
        r = count_failed(p, storage, remains, error);
    return r;
}

static int look_at_tables(const wb_endpoint_setup *setup, wb_endpoint *e, wb_remains *remains, wb_error *error)
{
    wb_storage_session *storage = NULL;
    int r = wb_endpoint_open_storage(e, &storage, error);
    if (r == WB_OK)
        r = count_rows(setup, wb_endpoint_pipeline(e), storage, remains, error);
    if (storage)
        setup->persistence_ops->close(storage);
    remains->has_tables = r == WB_OK;
    return r != WB_OK && error->cause == WB_CAUSE_MISSING ? WB_OK : r;
}

/* The queue of an endpoint that keeps failures is others' error queue, which stays with what is in it. */
static int look_at_queue(const wb_pipeline *p, wb_remains *remains, wb_error *error)
{
    int r = p->transport_ops->depth(p->transport, &remains->queue, error);
    if (p->failures)
        remains->queue = (wb_transport_depth){ .struct_size = sizeof remains->queue, .readers = remains->queue.readers };
    return r;
}

int wb_removal_look(const wb_endpoint_setup *setup, wb_endpoint *e, wb_remains *ret_remains, wb_error *error)
{
    const wb_pipeline *p = wb_endpoint_pipeline(e);
    *ret_remains = (wb_remains){ .queue.struct_size = sizeof ret_remains->queue,
                                 .error_queue = p->failures ? setup->info.name : NULL };
    int r = look_at_queue(p, ret_remains, error);
    return r == WB_OK && wb_endpoint_owns_tables(e) ? look_at_tables(setup, e, ret_remains, error) : r;
}

uint64_t wb_removal_rows(const wb_remains *remains)
{
    return remains->pending + remains->delayed + remains->written + remains->failed;
}

/* ---- removing ----------------------------------------------------------------------------- */

int wb_removal_is_foreign(const wb_endpoint *e, const wb_remains *remains)
{
    return wb_endpoint_owns_tables(e) && remains->queue.is_installed && !remains->has_tables;
}

/* What is refused is as it was, and nothing is begun. */
static int remove_queue(wb_endpoint *e, const wb_remains *remains, uint32_t flags, wb_error *error)
{
    const wb_pipeline *p = wb_endpoint_pipeline(e);
    wb_error ignored = { 0 };
    int r = remains->has_tables ? wb_notes_begin_uninstall(e, error) : WB_OK;
    if (r == WB_OK && !p->failures)
        r = p->transport_ops->uninstall(p->transport, flags, error);
    if (r == WB_REJECT)
        (void)wb_notes_forget_uninstall(e, &ignored);
    return r;
}

/* Programs and sessions need no queue to commit what is to be sent. */
static int look_again(const wb_endpoint_setup *setup, wb_endpoint *e, wb_error *error)
{
    wb_remains now = { .pending = 0 };
    int r = look_at_tables(setup, e, &now, error);
    if (r != WB_OK || !wb_removal_rows(&now))
        return r;
    return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0,
                        "its queue is removed, but something came into its tables meanwhile (rows that wait: %" PRIu64
                        "): stop whoever writes there; \"waybill install\" has it back, to run until all is done, and "
                        "--force removes the rows, which are lost", wb_removal_rows(&now));
}

int wb_removal_run(const wb_endpoint_setup *setup, wb_endpoint *e, const wb_remains *remains, uint32_t flags,
                   wb_error *error)
{
    const wb_pipeline *p = wb_endpoint_pipeline(e);
    int r = remove_queue(e, remains, flags, error);
    wb_crash_point("queue_removed");
    if (r == WB_OK && wb_endpoint_owns_tables(e) && !(flags & WB_UNINSTALL_MESSAGES))
        r = look_again(setup, e, error);
    if (r == WB_OK && wb_endpoint_owns_tables(e))
        r = p->persistence_ops->uninstall(p->persistence, error);
    wb_crash_point("tables_removed");
    if (r == WB_OK && p->apart_ops)
        r = p->apart_ops->uninstall(p->apart, error);
    return r;
}

/* On an instance of its own, which knows of no others: what is somebody else's is not for the transport to see. */
int wb_removal_run_error_queues(const wb_endpoint_setup *setup, wb_error *error)
{
    wb_endpoint *e = NULL;
    int r = wb_endpoint_create(setup, &e, error);
    if (r == WB_OK)
        r = setup->transport_ops->uninstall(wb_endpoint_pipeline(e)->transport, WB_UNINSTALL_ERROR_QUEUES, error);
    wb_endpoint_destroy(e);
    return r;
}

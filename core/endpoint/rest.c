/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/rest.h"

#include "core/endpoint/backlog.h"

/* One whose messages the broker delays has no table. */
static int look_for_delayed(const wb_endpoint *endpoint, const wb_pipeline *p, wb_storage_session *storage,
                            wb_rest *rest, wb_error *error)
{
    int64_t due = WB_NEVER_DUE, now;
    if (!wb_endpoint_keeps_delayed(endpoint))
        return WB_OK;
    int r = p->persistence_ops->delayed->next(storage, &due, &now, error);
    rest->is_delayed = due != WB_NEVER_DUE;
    return r != WB_OK && error->cause == WB_CAUSE_MISSING ? WB_OK : r;
}

/* Where there is no outbox nobody sends them. */
static int look_for_written(const wb_pipeline *p, wb_storage_session *storage, wb_rest *rest, wb_error *error)
{
    int64_t count = 0;
    int r = p->outbox ? wb_backlog_count_written(p, storage, 1, &count, error) : WB_OK;
    rest->is_written = count > 0;
    return r;
}

int wb_rest_ask(wb_endpoint *endpoint, wb_rest *ret_rest, wb_error *error)
{
    const wb_pipeline *p = wb_endpoint_pipeline(endpoint);
    wb_storage_session *storage = NULL;
    *ret_rest = (wb_rest){ .pending = 0 };
    if (!p->persistence_ops || !(p->outbox || wb_endpoint_keeps_delayed(endpoint)))
        return WB_OK;
    int r = wb_endpoint_open_storage(endpoint, &storage, error);
    if (r == WB_OK && p->outbox && WB_HAS(p->persistence_ops, wb_persistence_ops, list_pending))
        r = wb_backlog_count_work(p, storage, &ret_rest->pending, error);
    if (r == WB_OK)
        r = look_for_delayed(endpoint, p, storage, ret_rest, error);
    if (r == WB_OK)
        r = look_for_written(p, storage, ret_rest, error);
    if (storage)
        p->persistence_ops->close(storage);
    return r;
}

int wb_rest_count_waiting(wb_endpoint *endpoint, wb_transport_depth *ret_depth, wb_error *error)
{
    const wb_pipeline *p = wb_endpoint_pipeline(endpoint);
    *ret_depth = (wb_transport_depth){ .struct_size = sizeof *ret_depth };
    if (!WB_HAS(p->transport_ops, wb_transport_ops, depth))
        return WB_OK;
    return p->transport_ops->depth(p->transport, ret_depth, error);
}

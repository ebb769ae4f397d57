/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/limits.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/log.h"

static void warn_unknown(const wb_pipeline *p)
{
    char assumed[12];
    (void)snprintf(assumed, sizeof assumed, "%d", WB_DELIVERY_LIMIT_ASSUMED);
    wb_log_event(WB_LOG_WARNING, "nobody can tell after how many deliveries the broker drops a message",
                 { "endpoint", p->endpoint }, { "queue", p->endpoint }, { "assumed", assumed });
}

/* Fewer retries only help where the limit leaves room for any. */
static int refuse(const wb_pipeline *p, uint32_t limit, uint32_t needed, wb_error *error)
{
    char fewer[64] = "";
    if (limit >= WB_DELIVERIES_BESIDE_RETRIES)
        (void)snprintf(fewer, sizeof fewer, ", or set immediate_retries to %" PRIu32 " or less",
                       limit - WB_DELIVERIES_BESIDE_RETRIES);
    return wb_error_set(error, WB_FATAL, WB_CAUSE_MISMATCH, limit,
                        "queue \"%s\" drops a message that comes back more than %" PRIu32
                        " times (its delivery limit), and immediate_retries = %u needs at least %" PRIu32
                        ": raise the queue's limit (x-delivery-limit, or the policy that sets it)%s",
                        p->endpoint, limit, p->recoverability.immediate_retries, needed, fewer);
}

int wb_limits_ask(const wb_pipeline *p, wb_transport_limits *ret_limits, wb_error *error)
{
    uint32_t needed = p->recoverability.immediate_retries + WB_DELIVERIES_BESIDE_RETRIES;

    *ret_limits = (wb_transport_limits){ .struct_size = sizeof *ret_limits };
    /* With none a message is gone from the queue before it is handled. */
    if (p->mode == WB_MODE_NONE || !WB_HAS(p->transport_ops, wb_transport_ops, limits))
        return WB_OK;
    int r = p->transport_ops->limits(p->transport, ret_limits, error);
    if (r != WB_OK)
        return r;
    if (ret_limits->delivery_limit && ret_limits->delivery_limit < needed) /* WB_LIMIT_UNKNOWN is above all */
        return refuse(p, ret_limits->delivery_limit, needed, error);
    return WB_OK;
}

int wb_limits_apply(wb_pipeline *p, wb_error *error)
{
    wb_transport_limits limits;
    int r = wb_limits_ask(p, &limits, error);
    if (r == WB_OK && limits.delivery_limit == WB_LIMIT_UNKNOWN) {
        warn_unknown(p);
        limits.delivery_limit = WB_DELIVERY_LIMIT_ASSUMED;
    }
    p->recoverability.delivery_limit = r == WB_OK ? limits.delivery_limit : 0;
    p->returns_first = r == WB_OK && limits.flags & WB_LIMITS_RETURNS_FIRST;
    return r;
}

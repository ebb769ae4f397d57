/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/capability.h"

#include <stdio.h>

const wb_capability_name wb_capability_names[] = {
    { WB_CAP_MODE_NONE, "none" },
    { WB_CAP_MODE_RECEIVE_ONLY, "receive_only" },
    { WB_CAP_MODE_SENDS_ATOMIC, "sends_atomic_with_receive" },
    { WB_CAP_MODE_TRANSACTION_SCOPE, "transaction_scope" },
    { WB_CAP_DELAY, "delay" },
    { WB_CAP_DELIVERY_COUNT, "delivery_count" },
    { WB_CAP_ORDER_PER_KEY, "order_per_key" },
    { WB_CAP_HEADER_ORDER, "header_order" },
    { WB_CAP_EXPIRY, "expiry" },
    { WB_CAP_PUBLISH, "publish" },
    { WB_CAP_POSITION, "position" },
    { WB_CAP_UNINSTALL, "uninstall" },
    { WB_CAP_UNSUBSCRIBE, "unsubscribe" },
    { WB_CAP_QUEUES, "queues" },
    { WB_CAP_OUTBOX, "outbox" },
    { WB_CAP_DELAY_STORE, "delay_store" },
    { WB_CAP_DELAY_WITH_COMMIT, "delay_with_commit" },
    { WB_CAP_CLAIM_WITH_COMMIT, "claim_with_commit" },
    { WB_CAP_WRITTEN, "written" },
    { WB_CAP_POSITIONS, "positions" },
    { WB_CAP_FORGET, "forget" },
    { WB_CAP_REMEMBER, "remember" },
    { WB_CAP_REMOVE_TABLES, "remove_tables" },
    { WB_CAP_SUBSCRIPTIONS, "subscriptions" },
    { WB_CAP_FAILED, "failed" },
    { WB_CAP_JOIN_TRANSPORT, "join_transport" },
    { WB_CAP_SEES_STARTED, "sees_started" },
    { WB_CAP_SEES_HANDLED, "sees_handled" },
    { WB_CAP_SEES_FAILED, "sees_failed" },
    { WB_CAP_SEES_SENT, "sees_sent" },
    { 0, NULL },
};

const char *wb_capabilities_text(uint64_t capabilities, const char *separator, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (const wb_capability_name *one = wb_capability_names; one->bit && used < size; one++)
        if (capabilities & one->bit)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? separator : "", one->name);
    return text;
}

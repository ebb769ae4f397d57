/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of capabilities: those of the modes are what the configuration calls them.
 */
#ifndef WB_PLUGIN_CAPABILITY_H
#define WB_PLUGIN_CAPABILITY_H

#include <waybill/sys/plugin.h>

typedef struct wb_capability_name {
    uint64_t bit;
    const char *name;
} wb_capability_name;

/* Whose they are. */
#define WB_CAPS_OF_TRANSPORTS                                                                      \
    (WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_SENDS_ATOMIC | WB_CAP_MODE_TRANSACTION_SCOPE |          \
     WB_CAP_DELAY | WB_CAP_DELIVERY_COUNT | WB_CAP_ORDER_PER_KEY | WB_CAP_PUBLISH | WB_CAP_HEADER_ORDER |              \
     WB_CAP_EXPIRY | WB_CAP_POSITION | WB_CAP_UNINSTALL | WB_CAP_UNSUBSCRIBE | WB_CAP_QUEUES)
#define WB_CAPS_OF_PERSISTENCES                                                                    \
    (WB_CAP_OUTBOX | WB_CAP_DELAY_STORE | WB_CAP_JOIN_TRANSPORT | WB_CAP_DELAY_WITH_COMMIT |                           \
     WB_CAP_CLAIM_WITH_COMMIT | WB_CAP_WRITTEN | WB_CAP_POSITIONS | WB_CAP_FORGET | WB_CAP_REMEMBER |   \
     WB_CAP_REMOVE_TABLES | WB_CAP_SUBSCRIPTIONS | WB_CAP_FAILED)
#define WB_CAPS_OF_OBSERVERS (WB_CAP_SEES_STARTED | WB_CAP_SEES_HANDLED | WB_CAP_SEES_FAILED | WB_CAP_SEES_SENT)

/** Without the bits of later versions, which are ignored. */
static inline uint64_t wb_capabilities_known(uint64_t capabilities)
{
    return capabilities & (WB_CAPS_OF_TRANSPORTS | WB_CAPS_OF_PERSISTENCES | WB_CAPS_OF_OBSERVERS);
}

/** All that are known, in the order of their bits; ends with bit 0. */
extern const wb_capability_name wb_capability_names[];

/** The names of a mask's bits, with a separator between. @return `text`. */
const char *wb_capabilities_text(uint64_t capabilities, const char *separator, char *text, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WB_COMMON_TYPES_OF_H
#define WB_COMMON_TYPES_OF_H

#include <waybill/sys/transport.h>

/** The header NServiceBus.EnclosedMessageTypes of an operation (for wb_type_next()), its own; "" when it
 *  has none. Pure. */
const char *wb_common_types_of(const wb_operation *operation);

#endif

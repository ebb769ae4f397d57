/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler may ask for with a time to be received. What transports read of it is
 * waybill/sys/expiry.h.
 */
#ifndef WB_MESSAGE_EXPIRY_H
#define WB_MESSAGE_EXPIRY_H

#include <waybill/message.h>

#include "core/base/error.h"

/** `expires`: whether the transport lets messages expire. @return WB_OK, or WB_REJECT with the reason. */
int wb_expiry_check(const wb_outgoing *outgoing, int expires, wb_error *error);

#endif

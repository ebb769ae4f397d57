/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/expiry.h"

#include <waybill/sys/expiry.h>

#include "core/message/header_names.h"

static int reject(wb_error *error, int cause, const char *what)
{
    return wb_error_set(error, WB_REJECT, cause, 0, "%s", what);
}

/* A header of the user's own wins, as others do; one that cannot be read is a header like any other. */
static int64_t asked_for(const wb_outgoing *outgoing)
{
    const wb_header *own =
        WB_EXPIRY_FIND(outgoing->headers, outgoing->header_count, WB_HEADER_TIME_TO_BE_RECEIVED);
    return own ? wb_time_to_be_received(outgoing->headers, outgoing->header_count)
               : outgoing->time_to_be_received;
}

int wb_expiry_check(const wb_outgoing *outgoing, int expires, wb_error *error)
{
    if (outgoing->time_to_be_received < 0)
        return reject(error, WB_CAUSE_OTHER, "an outgoing message's time to be received is negative");
    if (outgoing->time_to_be_received > WB_EXPIRY_MAX)
        return reject(error, WB_CAUSE_TOO_LARGE, "an outgoing message's time to be received is more than 49 days");
    if (!asked_for(outgoing))
        return WB_OK;
    if (outgoing->delay || outgoing->deliver_at)
        return reject(error, WB_CAUSE_OTHER, "an outgoing message has both a delay and a time to be received: it "
                                             "could expire before it is due");
    if (!expires)
        return reject(error, WB_CAUSE_OTHER, "messages do not expire here: the transport cannot honour a time "
                                             "to be received");
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits in one endpoint's queue goes to another's, with its ids: received, sent, acknowledged, so what is moved twice is
 * a duplicate. What cannot go there (it is unreadable, or refused for good) goes to the other's error queue, as a failed
 * message of that endpoint, with the reason, cut down if it has to be.
 */
#ifndef WB_ENDPOINT_TRANSFER_H
#define WB_ENDPOINT_TRANSFER_H

#include "core/endpoint/endpoint.h"

typedef struct wb_transferred {
    uint64_t moved;
    uint64_t failed; /* to the error queue */
} wb_transferred;

/** Until nothing waits. Neither has workers; both are installed. *transferred grows, also before an error.
 *  @return WB_OK, or what makes it end with messages left: the servers' state, or a message that neither queue takes. May be
 *  called again. */
int wb_transfer_run(wb_endpoint *from, wb_endpoint *to, wb_transferred *transferred, wb_error *error);

#endif

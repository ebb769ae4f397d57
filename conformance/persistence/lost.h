/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls whose connection breaks: what a file of cases says of a call, and what lost.c makes of
 * it.
 */
#ifndef WB_CONFORMANCE_LOST_H
#define WB_CONFORMANCE_LOST_H

#include "conformance/persistence/persistence.h"
#include "conformance/relay.h"

#define WB_ONE_OF(result) (1u << (result))
#define WB_GONE WB_ONE_OF(WB_NOT_CONNECTED)
#define WB_GONE_OR_UNKNOWN (WB_GONE | WB_ONE_OF(WB_IN_DOUBT))
/* All was done, and what got lost was of no consequence: checked where it is used. */
#define WB_GONE_OR_DONE (WB_GONE | WB_ONE_OF(WB_OK))

typedef struct wb_lost_call {
    int (*prepare)(wb_client *client); /* on the connection that will break */
    int (*call)(wb_client *client);
    unsigned allowed; /* classes when the connection breaks in the call */
    /* On a session of its own. `is_sent`: the server may have executed the call. */
    void (*check)(wb_client *look, int result, int is_sent);
} wb_lost_call;

/** The connection breaks before the call. */
void wb_lost_cut(wb_kit *kit, const wb_lost_call *trial);
/** Each request of the call in turn, or its reply, is lost. */
void wb_lost_lose(wb_kit *kit, const wb_lost_call *trial, wb_loss loss);
/** The same with the first alone, and the server crashes; skipped without a command for it. */
void wb_lost_in_crash(wb_kit *kit, const wb_lost_call *trial, wb_loss loss);

#endif

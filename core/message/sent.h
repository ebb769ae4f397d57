/* SPDX-License-Identifier: Apache-2.0
 *
 * When a message was sent, as its headers say; one that was sent with a delay, when it was due.
 */
#ifndef WB_MESSAGE_SENT_H
#define WB_MESSAGE_SENT_H

#include <waybill/message.h>

#include "core/base/clock.h"

/** Who reads many, in about the order of the clock, reads most of a date once. All zero at first. */
typedef struct wb_sent {
    char minute[17]; /* "yyyy-MM-dd HH:mm" */
    int64_t since;   /* when that began, by the wall clock */
} wb_sent;

/** @return wall clock nanoseconds by the sender's clock (its database's: what was delayed), or 0: there is no such
 *  header, or it cannot be read, or names a year outside of 2000 to 2199, which is no time anything was sent. */
int64_t wb_sent_read(wb_sent *sent, const wb_header *headers, size_t count);

#endif

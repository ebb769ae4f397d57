/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-sent events: how the process is, once a second, to a few who look on. Each stream ends after a while, before the listener would
 * cut it off, and the browser asks for the next one by itself: who has gone away is not kept.
 *
 * Threads: one of the listener's opens and writes; the other says when a second is over.
 */
#ifndef WB_HTTP_STREAM_H
#define WB_HTTP_STREAM_H

#include <microhttpd.h>

#include "core/metrics/board.h"

/** At a time; others ask again and again instead. */
#define WB_STREAMS 12
#define WB_STREAM_EVERY (1 * INT64_C(1000000000))
/** Seconds; less than WB_HTTP_LONGEST_SECONDS. */
#define WB_STREAM_SECONDS 20

typedef struct wb_streams wb_streams;

wb_streams *wb_streams_make(wb_board *board);
/** All of them have ended. NULL is allowed. */
void wb_streams_free(wb_streams *streams);
/** A response for a connection. @return NULL: there are too many. */
struct MHD_Response *wb_streams_open(wb_streams *streams, struct MHD_Connection *connection);
/** Send the next event if it is time (monotonic). */
void wb_streams_look(wb_streams *streams, int64_t now);
/** End all, and let none begin. */
void wb_streams_end(wb_streams *streams);

#endif

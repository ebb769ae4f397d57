/* SPDX-License-Identifier: Apache-2.0
 *
 * The listener: answers by HTTP what the board (core/metrics/board.h) says. Two threads of its own, which share nothing with workers:
 * one answers, one minds the time, whatever the main thread waits for.
 *
 *   /metrics         OpenMetrics text
 *   /status          JSON
 *   /health/live     200, or 503: a worker is stuck, or the main thread, and the process is to be started anew
 *   /health/ready    200, or 503: an endpoint has not begun, ends, or waits for a server; or the main thread is stuck
 *   / and /api/      the console, where there is one (console.h)
 *
 * Who is slow, hostile or many harms nobody but others who ask, and from one address not even those: so many connections at a
 * time, most of them an address, so much memory and time each; what cannot be answered is refused, and what takes too long is cut off.
 */
#ifndef WB_HTTP_LISTENER_H
#define WB_HTTP_LISTENER_H

#include "core/base/error.h"
#include "core/config/configuration.h"
#include "core/console/console.h"
#include "core/metrics/board.h"

/** Connections at a time; more wait in the system's queue. */
#define WB_HTTP_CONNECTIONS 32
/** Of one address, so that it alone keeps nobody out; the next is closed at once. A proxy is one address for many people. */
#define WB_HTTP_CONNECTIONS_OF_ONE 24
/** A connection from which nothing comes, or that takes nothing, is closed after so many seconds; and any after the second. */
#define WB_HTTP_IDLE_SECONDS 10
#define WB_HTTP_LONGEST_SECONDS 30
/** A request's line and headers, in bytes. */
#define WB_HTTP_REQUEST_MAX 16384

typedef struct wb_listener wb_listener;

/** Listen, and answer from now on. Configuration, board and console (NULL: there is none), whose desk is open, live longer.
 *  @return WB_OK, or WB_FATAL with the reason: WB_CAUSE_CONFIG where the address or the certificate is of no use. */
int wb_listener_start(const wb_http_config *config, wb_board *board, wb_console *console, wb_listener **ret_listener, wb_error *error);
/** Close the console's desk and all connections, and end the threads. NULL is allowed. */
void wb_listener_stop(wb_listener *listener);

#endif

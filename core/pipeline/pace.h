/* SPDX-License-Identifier: Apache-2.0
 *
 * How a worker waits after failures: longer each time, and with a line that says why.
 */
#ifndef WB_PIPELINE_PACE_H
#define WB_PIPELINE_PACE_H

#include "core/pipeline/worker.h"

/** Wait, if there was a failure before: from 10 ms, doubled with each, to 5 s. */
void wb_pace_back_off(wb_worker *w);
/** Log why the worker cannot go on, unless it did so lately. */
void wb_pace_complain(wb_worker *w, const char *text, const wb_error *error);
/** Wait before asking for a server again: while it is away until the worker's turn has come, or
 *  the endpoint stops; else as after any failure. */
void wb_pace_take_turn(wb_worker *w, wb_waiter *waiter);
/** What came of asking: WB_OK and WB_FATAL stay; all else is WB_NOT_CONNECTED, and the server is
 *  away as far as this worker goes. */
int wb_pace_wait_for_server(wb_waiter *waiter, int result, wb_error *error);
/** What a call said that keeps its session with WB_RETRY (a full disk: what is in hand stays there), WB_OK too. For five
 *  seconds in a row: whoever says so for longer may have lost it. Any other failure ends it at once. */
void wb_pace_judge_transport(wb_worker *w, int result);
/** All is well again: forget the back-off, and say so if we complained. */
void wb_pace_go_on(wb_worker *w);

#endif

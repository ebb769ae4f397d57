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
/** What came of asking a server: WB_OK and WB_FATAL stay; all else is logged as above and is
 *  WB_NOT_CONNECTED. */
int wb_pace_wait_for_server(wb_worker *w, int result, wb_error *error);
/** All is well again: forget the back-off, and say so if we complained. */
void wb_pace_go_on(wb_worker *w);

#endif

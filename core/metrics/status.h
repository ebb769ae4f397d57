/* SPDX-License-Identifier: Apache-2.0
 *
 * What /status answers: the state of the process and of its endpoints, why, and the counts that say most, as JSON for programs
 * (`waybill status` is one). Fields are only added.
 */
#ifndef WB_METRICS_STATUS_H
#define WB_METRICS_STATUS_H

#include <jansson.h>

#include "core/metrics/metrics.h"

/** The value, the caller's. */
json_t *wb_status_json(const wb_overview *overview);

/** What is told of the process: the last in the order of health.h that an endpoint has. */
int wb_status_worst(const wb_overview *overview);
/** The main thread looks ten times a second: one that has not for so long (ns) hangs. */
#define WB_STATUS_OLDEST (INT64_C(30) * 1000000000)
/** Whether no worker is stuck, nor the main thread: a process that is not alive is to be started anew. */
int wb_status_is_alive(const wb_overview *overview);
/** Whether every endpoint handles messages, or could at once: it has begun, its servers are there, workers are at work; and the
 *  main thread has seen it. */
int wb_status_is_ready(const wb_overview *overview);

#endif

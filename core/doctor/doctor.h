/* SPDX-License-Identifier: Apache-2.0
 *
 * The doctor: asks the servers of an endpoint, and says what would bite. It runs on instances of its own, of which no
 * session receives, beside a running endpoint or without one, and changes nothing.
 *
 * What is found comes from what verify() refuses or warns of, from examine() of the plugins, from the broker's delivery
 * limit (endpoint/limits.h), from the clocks (clocks.h) and from the configuration's own times (times.h).
 */
#ifndef WB_DOCTOR_DOCTOR_H
#define WB_DOCTOR_DOCTOR_H

#include "core/base/error.h"
#include "core/config/problems.h"
#include "core/doctor/findings.h"
#include "core/endpoint/setup.h"

typedef struct wb_doctor {
    int64_t outage; /* for so long endpoint, broker and database may stand still, each; nanoseconds */
    wb_findings findings;
    wb_error failure; /* why a server could not be looked at, of the first; result WB_OK: all were */
} wb_doctor;

/** Add what the configuration was warned of (wb_setup_load(), wb_setup_rehearse()). */
void wb_doctor_read_problems(wb_doctor *doctor, const wb_problems *problems);

/** Look at an endpoint that is ready. Each of its servers is looked at, whatever is wrong with the others. Main thread. */
void wb_doctor_examine(wb_doctor *doctor, const wb_endpoint_setup *setup);

void wb_doctor_free(wb_doctor *doctor);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the times in a configuration say of each other.
 */
#ifndef WB_DOCTOR_TIMES_H
#define WB_DOCTOR_TIMES_H

#include "core/doctor/findings.h"
#include "core/endpoint/setup.h"

/** How long after its first attempt a message may have its last one, by its delays alone. */
int64_t wb_times_of_retries(const wb_endpoint_setup *setup);

/** An id is to be remembered until no copy of its message can come any more: of one that stands in line behind delayed
 *  retries, or comes again when what was away for `outage` is back. */
void wb_times_compare(const wb_endpoint_setup *setup, int64_t outage, wb_findings *findings);

#endif

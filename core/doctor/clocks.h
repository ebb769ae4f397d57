/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock of the database against this host's.
 */
#ifndef WB_DOCTOR_CLOCKS_H
#define WB_DOCTOR_CLOCKS_H

#include <waybill/sys/persistence.h>

#include "core/base/error.h"
#include "core/doctor/findings.h"

/** So much is none: clocks that are kept by NTP differ by milliseconds. */
#define WB_CLOCKS_DIFFER (INT64_C(2000000000))

/** Ask for its time, and find it when it differs by more than that, whatever the way there and back took. A persistence
 *  without a clock has none to differ. @return WB_OK, or why it could not be asked. */
int wb_clocks_compare(const wb_persistence_ops *ops, wb_persistence *persistence, const wb_finding_place *at,
                      wb_findings *findings, wb_error *error);

#endif

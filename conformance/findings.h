/* SPDX-License-Identifier: Apache-2.0
 *
 * What examine() tells, held to its contract.
 */
#ifndef WB_CONFORMANCE_FINDINGS_H
#define WB_CONFORMANCE_FINDINGS_H

#include "conformance/kit.h"

/** What examine() is to be called with; every finding is checked as it comes. `kit` stays. */
wb_examination wb_kit_examination(wb_kit *kit);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The module about business data that --business names (waybill/sys/business.h).
 */
#ifndef WB_CONFORMANCE_BUSINESS_H
#define WB_CONFORMANCE_BUSINESS_H

#include <waybill/sys/business.h>

#include "core/base/error.h"

/** Load it, for good. @return WB_OK, or WB_FATAL with one sentence in `error`. */
int wb_business_load(const char *path, const wb_business **ret_business, wb_error *error);

#endif

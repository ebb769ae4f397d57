/* SPDX-License-Identifier: Apache-2.0
 *
 * What examine() found, told to the host.
 */
#ifndef WB_COMMON_FINDING_H
#define WB_COMMON_FINDING_H

#include <waybill/sys/plugin.h>

/** Tell of one; `severity` is WB_FINDING_x. `remedy` is NULL only with WB_FINDING_NOTE. */
void wb_common_find(const wb_examination *examination, int severity, const char *name, const char *remedy,
                    const char *format, ...) WB_PRINTF(5, 6);

#endif

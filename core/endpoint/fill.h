/* SPDX-License-Identifier: Apache-2.0
 *
 * What the configuration, the plan and the plugins say, as a pipeline wants it.
 */
#ifndef WB_ENDPOINT_FILL_H
#define WB_ENDPOINT_FILL_H

#include "core/endpoint/setup.h"
#include "core/pipeline/pipeline.h"

/** Set and prepare a pipeline that is all zero; the plugins' instances are the caller's to make. wb_pipeline_free() and
 *  wb_hooks_free() free what it has. */
void wb_fill_pipeline(wb_pipeline *p, const wb_endpoint_setup *setup);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What plugins say of their options when an instance is made of them: what no table of options
 * tells (options that exclude each other, a file that is not there, a value that only the client's
 * library knows to be wrong). And what handler modules say of the endpoint's settings.
 */
#ifndef WB_ENDPOINT_REHEARSAL_H
#define WB_ENDPOINT_REHEARSAL_H

#include "core/base/error.h"
#include "core/endpoint/setup.h"

/** Make the instances of each endpoint that is ready, and destroy them, and have its modules check: no network.
 *  What fails is added to `problems` with the place of the plugin's group, or of the module, and the endpoint is not
 *  ready then.
 *  Main thread, before any endpoint runs.
 *  @return WB_OK, or WB_FATAL with at least one error added. */
int wb_setup_rehearse(wb_setup *setup, wb_problems *problems);

/** Have an endpoint's modules check alone, up to the first that refuses. Likewise.
 *  @return WB_OK, or the class of what it said, with the place of the module. */
int wb_setup_check_modules(const wb_endpoint_setup *setup, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A trial: whether an endpoint could start, asked beside the running program. It verifies plugin
 * instances of its own on a thread of its own, so that a server that does not answer keeps nobody
 * waiting, and so that finding a table still missing costs no message a delivery. One that was not
 * started before may take the endpoint that was tried.
 */
#ifndef WB_ENDPOINT_TRIAL_H
#define WB_ENDPOINT_TRIAL_H

#include "core/endpoint/endpoint.h"

typedef struct wb_trial wb_trial;

/** Main thread, as the others. `setup` must outlive the trial. `install`: make what the endpoint
 *  needs first.
 *  @return WB_OK, or the reason for which it could not begin. */
int wb_trial_start(const wb_endpoint_setup *setup, int install, wb_trial **ret_trial, wb_error *error);
/** Whether its thread is about to return. */
int wb_trial_has_ended(const wb_trial *trial);
/** Wait for it and free it. `ret_endpoint` (may be NULL) gets the endpoint, which is ready to be
 *  started, when all was well. @return what wb_endpoint_install() and wb_endpoint_verify() said. */
int wb_trial_end(wb_trial *trial, wb_endpoint **ret_endpoint, wb_error *error);

#endif

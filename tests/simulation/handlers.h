/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers: what each does is its message's fate.
 */
#ifndef WB_SIMULATION_HANDLERS_H
#define WB_SIMULATION_HANDLERS_H

#include <waybill/handler.h>

#define SIM_TYPE_ONE "Sim.One"
#define SIM_TYPE_BATCH "Sim.Batch"
#define SIM_TYPE_BASE "Sim.Base"
#define SIM_TYPE_UNKNOWN "Sim.Unknown"
#define SIM_TYPE_OTHER "Sim.Other"
#define SIM_TYPE_SENT "Sim.Done"

int sim_handle_one(wb_context *ctx, const wb_message *message);
int sim_handle_base(wb_context *ctx, const wb_message *message);
int sim_handle_other(wb_context *ctx, const wb_message *message);
struct sim_message;
struct sim_run;
/** What a program does in a session, but for the commit. @return WB_OK, or what failed. */
int sim_handle_session(wb_context *ctx, struct sim_message *session, struct sim_run **ret_run);
int sim_handle_batch(wb_context *ctx, const wb_message *const *messages, size_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What broke, in the host's words: AMQP reply codes and library statuses become a
 * result class, a cause and a text.
 *
 * A lost connection is nobody's fault and the server's to mend, but one kind is told
 * apart by its cause: WB_CAUSE_OTHER means that the broker (or the library) disliked
 * what was sent or received on it, so somebody's operation may be to blame;
 * WB_CAUSE_UNREACHABLE and WB_CAUSE_SERVER never blame anybody.
 */
#ifndef WB_AMQP_MAP_H
#define WB_AMQP_MAP_H

#include <stdint.h>
#include <waybill/sys/plugin.h>

#include "plugins/common/failure.h"
#include "plugins/common/rabbitmq.h"

/** Why a connection or a channel is no more. Kept with the connection, because the thread that
 *  finds out may be the keeper, which has nobody to tell. The last reason is the one. */
typedef wb_common_failure wb_amqp_failure;
#define wb_amqp_failure_set wb_common_failure_set
#define wb_amqp_failure_report wb_common_failure_report

/** A negative status of the library. `doing` completes "could not ...". */
int wb_amqp_map_status(wb_amqp_failure *failure, int status, const char *doing);
/** The same, with a reason that says more than the status does; NULL: there is none. */
int wb_amqp_map_status_because(wb_amqp_failure *failure, int status, const char *doing, const char *reason);

/** The broker closed the connection with this code and text. */
int wb_amqp_map_connection_close(wb_amqp_failure *failure, int code, amqp_bytes_t text);

/** An answer to login. */
int wb_amqp_map_login(wb_amqp_failure *failure, amqp_rpc_reply_t reply, const char *doing);

/** The cause that belongs to the code with which a channel was closed. With
 *  WB_CAUSE_SERVER the same request would succeed at another time. */
int wb_amqp_map_cause(int64_t code);

/** What an operator grants when the broker closed a channel for want of a permission: the
 *  end of a sentence; empty where that is not the reason. */
const char *wb_amqp_map_remedy(const amqp_channel_close_t *close);

#endif

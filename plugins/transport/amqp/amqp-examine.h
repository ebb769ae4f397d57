/* SPDX-License-Identifier: Apache-2.0
 *
 * wb_transport_ops.examine: what arguments and policies of queues do one day. Those that break a promise are refused by
 * verify(); AMQP itself tells of no others, so the management interface is asked.
 */
#ifndef WB_AMQP_EXAMINE_H
#define WB_AMQP_EXAMINE_H

#include "plugins/transport/amqp/amqp-management.h"

int wb_amqp_examine(wb_transport *transport, const wb_examination *examination, wb_error *error);

/** What a queue that the interface has told about would do; `is_own`: messages are handled from it. Pure. */
void wb_amqp_examine_queue(const char *vhost, const char *name, int is_own, const wb_amqp_managed_queue *queue,
                           const wb_examination *examination);

#endif

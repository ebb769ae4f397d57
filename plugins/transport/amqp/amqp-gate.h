/* SPDX-License-Identifier: Apache-2.0
 *
 * A process holds at most one message whose body is larger than its endpoint's limit,
 * over all endpoints and workers: such messages are kept whole, because the error queue
 * gets them byte for byte, and twelve of 127 MiB would be a gigabyte.
 *
 * Nobody waits inside: who is not let in leaves its socket alone and asks again
 * (amqp-pump.c), so that heartbeats, interrupts and stops go on.
 */
#ifndef WB_AMQP_GATE_H
#define WB_AMQP_GATE_H

/** Whether nobody holds a message; no promise. */
int wb_amqp_gate_is_free(void);
/** @return 1: the caller may hold a message, until it leaves; 0: somebody else does.
 *  Any thread. */
int wb_amqp_gate_enter(void);
void wb_amqp_gate_leave(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-gate.h"

#include <stdatomic.h>

static atomic_int occupied;

int wb_amqp_gate_is_free(void)
{
    return !atomic_load(&occupied);
}

int wb_amqp_gate_enter(void)
{
    return !atomic_exchange(&occupied, 1);
}

void wb_amqp_gate_leave(void)
{
    atomic_store(&occupied, 0);
}

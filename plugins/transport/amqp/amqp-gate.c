/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-gate.h"

#include <stdatomic.h>

static atomic_flag occupied = ATOMIC_FLAG_INIT;

int wb_amqp_gate_enter(void)
{
    return !atomic_flag_test_and_set(&occupied);
}

void wb_amqp_gate_leave(void)
{
    atomic_flag_clear(&occupied);
}

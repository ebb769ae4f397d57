/* SPDX-License-Identifier: Apache-2.0
 *
 * The SPI's transport over the broker of the world; without the functions that the shape leaves
 * out.
 */
#ifndef WB_SIMULATION_TRANSPORT_H
#define WB_SIMULATION_TRANSPORT_H

#include <waybill/sys/transport.h>

/** The instance of an endpoint in a process. */
struct wb_transport {
    unsigned endpoint;
};

wb_transport_ops sim_transport_ops(void);

#endif

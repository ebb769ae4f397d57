/* SPDX-License-Identifier: Apache-2.0
 *
 * Which handler a message type goes to: a sorted table, made once, read by all workers.
 */
#ifndef WB_PIPELINE_ROUTES_H
#define WB_PIPELINE_ROUTES_H

#include <waybill/handler.h>
#include <waybill/sys/transport.h>

typedef struct wb_routes {
    const wb_handler **handlers; /* sorted by type */
    size_t count;
} wb_routes;

/** Takes a copy of the pointers; the handlers stay where they are. */
void wb_routes_init(wb_routes *routes, const wb_handler *const *handlers, size_t count);
void wb_routes_free(wb_routes *routes);

/** The handler of the first type in EnclosedMessageTypes that has one, or NULL. */
const wb_handler *wb_routes_find(const wb_routes *routes, const wb_incoming *incoming);

#endif

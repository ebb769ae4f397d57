/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left of an endpoint: in its tables operations that are not dispatched yet, delayed messages, and what programs wrote
 * in SQL; in its queue what nobody acknowledged, which others may receive. For who wants to know whether there is anything left
 * to do, beside workers that have nothing in hand.
 *
 * What a broker delays by itself is not seen.
 */
#ifndef WB_ENDPOINT_REST_H
#define WB_ENDPOINT_REST_H

#include "core/endpoint/endpoint.h"

typedef struct wb_rest {
    size_t pending; /* rows, parked ones too */
    int is_delayed; /* a message waits in the store, whenever it is due */
    int is_written; /* a message that a program wrote in SQL is not sent */
} wb_rest;

/** Ask, on a session of its own: waits for the database. Any thread, after wb_endpoint_create().
 *  @return WB_OK, or what the persistence says. */
int wb_rest_ask(wb_endpoint *endpoint, wb_rest *ret_rest, wb_error *error);

/** Ask the broker, as wb_transport_ops.depth has it; none waits where the transport cannot tell. Of an endpoint that was
 *  made for that and never started: any thread, but one at a time. Waits for the broker. @return WB_OK, or what the transport says. */
int wb_rest_count_waiting(wb_endpoint *endpoint, wb_transport_depth *ret_depth, wb_error *error);

#endif

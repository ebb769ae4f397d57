/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-probe.h"

/* Through the default exchange, where a message goes to the queue of that name: to none, for
 * nobody makes one. Should somebody do so all the same, it expires at once. */
#define ROUTING_KEY "waybill.probe: no queue may have this name"

void wb_amqp_probe_put(wb_amqp_sender *sender)
{
    wb_amqp_connection *connection = &sender->connection;
    amqp_basic_publish_t publish = { .routing_key = amqp_cstring_bytes(ROUTING_KEY) };
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_EXPIRATION_FLAG,
                                           .expiration = amqp_cstring_bytes("0") };
    sender->probe = wb_amqp_window_skip(&sender->window);
    wb_amqp_put_method(connection, WB_AMQP_MAIN, AMQP_BASIC_PUBLISH_METHOD, &publish);
    /* A body, because the broker stops after the header: without one the probe would be whole
     * by then, and confirmed. */
    (void)wb_amqp_put_content(connection, WB_AMQP_MAIN, &properties, 64, "?", 1);
}

void wb_amqp_probe_confirmed(wb_amqp_sender *sender, uint64_t sequence, int multiple)
{
    if (sequence == sender->probe || (multiple && (sequence == 0 || sequence > sender->probe)))
        sender->probe = 0;
}

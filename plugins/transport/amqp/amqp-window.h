/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of one send(): which are settled, which confirm belongs to which.
 * Pure bookkeeping.
 *
 * Confirms name publish sequence numbers, counted by the channel from 1; they come out
 * of order and in groups. A return comes before its confirm and names nothing but
 * exchange, routing key and id, but returns come in the order of publishing: the first operation
 * from where the last return was found that fits is the one, also among equal ids.
 */
#ifndef WB_AMQP_WINDOW_H
#define WB_AMQP_WINDOW_H

#include <stdint.h>
#include <waybill/sys/transport.h>

#include "plugins/common/rabbitmq.h"
#include "plugins/transport/amqp/amqp-options.h"
#include "plugins/transport/amqp/amqp-route.h"

#define WB_AMQP_REASON_SIZE 400

typedef struct wb_amqp_slot {
    wb_operation *operation;
    int64_t delay; /* seconds it has to wait from now on; 0: none. Set before it is published */
    int settled;  /* its result is final */
    int returned; /* the broker found no queue for it */
    char *reason; /* allocated with the first rejection; the operation points to it */
} wb_amqp_slot;

typedef struct wb_amqp_window {
    const wb_amqp_config *config; /* where its operations go */
    wb_amqp_slot *slots; /* one an operation, in the host's order */
    size_t count, capacity;
    size_t unsettled;
    /* what was published on the current channel and is not confirmed */
    size_t *published; /* index of the slot for each sequence number from `base` */
    size_t published_count;
    size_t lowest;  /* everything before it in `published` is confirmed */
    size_t outstanding;
    size_t returns; /* where to look for the next return */
    uint64_t base;  /* sequence number of published[0] */
    uint64_t next;  /* sequence number of the next publish on this channel */
} wb_amqp_window;

/** Begin with these operations, none of them settled. @return 0 when memory is out. */
int wb_amqp_window_begin(wb_amqp_window *window, wb_operation *const *operations, size_t count);
void wb_amqp_window_free(wb_amqp_window *window);

/** A new channel: sequence numbers begin again. */
void wb_amqp_window_new_channel(wb_amqp_window *window);
/** A new round of publishing: what is outstanding from before is nobody's. */
void wb_amqp_window_new_round(wb_amqp_window *window);
/** Something was published that is no slot's: nobody waits for its confirm here.
 *  @return its sequence number. */
uint64_t wb_amqp_window_skip(wb_amqp_window *window);
/** A slot was published. */
void wb_amqp_window_publish(wb_amqp_window *window, size_t slot);

/** Where a slot goes; as wb_amqp_route_make(). */
const char *wb_amqp_window_route(const wb_amqp_window *window, size_t slot, wb_amqp_route *ret_route);

/** Whether the broker is to send it back where no queue takes it. */
int wb_amqp_window_is_mandatory(const wb_amqp_window *window, size_t slot);

/** The result of a slot is final; `format` says why when it is not WB_OK. */
void wb_amqp_window_settle(wb_amqp_window *window, size_t slot, int result, int cause,
                           const char *format, ...) WB_PRINTF(5, 6);
/** basic.ack or basic.nack. */
void wb_amqp_window_confirm(wb_amqp_window *window, uint64_t sequence, int multiple, int nack);
/** basic.return. */
void wb_amqp_window_return(wb_amqp_window *window, amqp_bytes_t exchange, amqp_bytes_t key,
                           amqp_bytes_t id);

#endif

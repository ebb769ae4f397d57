/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of queues that exist. AMQP has no way to ask for them, but a broker that
 * refuses a declaration names one that differs and its value: with that the queue is
 * declared again, until nothing differs. Everything here is pure.
 */
#ifndef WB_AMQP_ARGUMENTS_H
#define WB_AMQP_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "plugins/common/rabbitmq.h"

/* Brokers know some twenty. */
#define WB_AMQP_ARGUMENTS_MAX 24

typedef struct wb_amqp_argument {
    char name[64];
    int kind; /* AMQP_FIELD_KIND_UTF8, _I64, _BOOLEAN; 0: its value is not known */
    int64_t number;
    char text[256];
} wb_amqp_argument;

typedef struct wb_amqp_arguments {
    size_t count;
    wb_amqp_argument list[WB_AMQP_ARGUMENTS_MAX];
} wb_amqp_arguments;

/** Read name and value of the queue's argument out of a refusal; its kind is 0 when the
 *  broker's words, which it cuts off, do not tell the value.
 *  @return 0 when no argument (x-...) is what differs. */
int wb_amqp_argument_read(const char *text, wb_amqp_argument *ret_argument);

/** The argument of that name, or NULL. */
const wb_amqp_argument *wb_amqp_arguments_find(const wb_amqp_arguments *arguments,
                                               const char *name);
/** @return 0 when there is one of that name already, or no room. */
int wb_amqp_arguments_add(wb_amqp_arguments *arguments, const wb_amqp_argument *argument);

/** Put them behind `count` entries of a table; returns the new count. The strings
 *  stay those of `arguments`. */
int wb_amqp_arguments_put(const wb_amqp_arguments *arguments, amqp_table_entry_t *entries,
                          int count);

/** The first that breaks a promise: of an input queue (`own`) or of an error queue. Limits
 *  of deliveries are the host's affair.
 *  @return the argument and in *ret_why what it does; NULL when all can be lived with. */
const wb_amqp_argument *wb_amqp_arguments_broken(const wb_amqp_arguments *arguments, int own,
                                                 const char **ret_why);

#endif

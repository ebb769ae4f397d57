/* SPDX-License-Identifier: Apache-2.0
 *
 * AMQP field values as text, the way NServiceBus turns header values that are not
 * strings into strings: byte[] as it is, timestamps in wire format, tables as
 * "k=v,...", lists joined with ";", booleans "True" and "False".
 */
#ifndef WB_AMQP_VALUES_H
#define WB_AMQP_VALUES_H

#include <stddef.h>

#include "plugins/common/rabbitmq.h"

/** Receives text; without a place to write to, it only counts. */
typedef struct wb_amqp_text {
    char *data; /* NULL: count */
    size_t size;
} wb_amqp_text;

void wb_amqp_text_put(wb_amqp_text *text, const void *data, size_t size);

/** Nothing is written of tables and lists nested deeper than 8. */
void wb_amqp_value_put(wb_amqp_text *text, const amqp_field_value_t *value);

#endif

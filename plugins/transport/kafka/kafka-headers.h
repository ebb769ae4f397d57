/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers of NServiceBus as record headers: the same names and values, in the same order.
 * The message id is one of them.
 */
#ifndef WB_KAFKA_HEADERS_H
#define WB_KAFKA_HEADERS_H

#include <librdkafka/rdkafka.h>
#include <waybill/sys/transport.h>

/** Whether a header is the one that holds the message id. */
int wb_kafka_header_is_id(const char *name, size_t size);

/** The record headers of an operation; the id is added where no header holds it. NULL when
 *  memory is out or, with *ret_reason and *ret_cause (WB_CAUSE_x), when the message can never
 *  be sent. Values and names may hold any bytes, names no NUL byte. */
rd_kafka_headers_t *wb_kafka_headers_make(const wb_operation *operation, const char **ret_reason,
                                          int *ret_cause);

#endif

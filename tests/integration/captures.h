/* SPDX-License-Identifier: Apache-2.0
 *
 * The captured messages (tests/captures), as the transport reads them from the frames.
 */
#ifndef WB_TEST_CAPTURES_H
#define WB_TEST_CAPTURES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <waybill/sys/transport.h>

#include "plugins/common/rabbitmq.h"

#define CAPTURE_HEADERS_MAX 64

typedef struct capture {
    const char *scenario, *exchange, *key;
    const char *type; /* the property; "" without */
    amqp_basic_properties_t properties;
    amqp_table_entry_t table[CAPTURE_HEADERS_MAX];
    wb_incoming incoming; /* what the transport makes of it */
    wb_header *headers;
    char *text;
} capture;

/** Call `each` for every message of a topology, "conventional" or "direct", in their order.
 *  @return how many there are. */
size_t captures_each(const char *topology, void (*each)(const capture *message, void *user), void *user);

/** A header by name, or NULL. */
const wb_header *capture_header(const wb_header *headers, size_t count, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport, which sends at once, made to delay: what is not due yet waits in the
 * session that received it. With no fault it passes the kit; a broken transport around it names
 * one.
 */
#ifndef WB_TESTS_DELAYING_H
#define WB_TESTS_DELAYING_H

#include "tests/conformance/broken.h"

typedef enum delaying_fault {
    DELAYING_EARLY,         /* what waits is handed out half a second too soon */
    DELAYING_LOSES_HEADERS, /* the last one of what waited */
} delaying_fault;

/** Exchange the operations for those that delay, and declare it. */
void delaying_use(wb_plugin *descriptor, wb_transport_ops *ops, delaying_fault fault);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport with one fault of expiry.
 */
#ifndef WB_TESTS_EXPIRING_H
#define WB_TESTS_EXPIRING_H

#include "tests/conformance/broken.h"

typedef enum {
    EXPIRING_NEVER,   /* nothing expires */
    EXPIRING_EARLY,   /* at a hundredth of the time */
    EXPIRING_ANYTHING /* what was received once, too */
} expiring_fault;

/** Give it that fault. */
void expiring_use(wb_transport_ops *ops, expiring_fault fault);

#endif

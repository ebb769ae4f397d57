/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares order per key: true of one session, not of two.
 */
#include "config.h"

#include "tests/conformance/broken.h"

BROKEN(order, descriptor.capabilities |= WB_CAP_ORDER_PER_KEY)

/* SPDX-License-Identifier: Apache-2.0
 *
 * What was received once expires, too.
 */
#include "config.h"

#include "tests/conformance/expiring.h"

BROKEN(merciless, expiring_use(&ops, EXPIRING_ANYTHING))

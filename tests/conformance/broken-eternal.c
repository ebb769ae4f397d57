/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages do not expire, though it says so.
 */
#include "config.h"

#include "tests/conformance/expiring.h"

BROKEN(eternal, expiring_use(&ops, EXPIRING_NEVER))

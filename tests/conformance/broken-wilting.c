/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages expire too soon.
 */
#include "config.h"

#include "tests/conformance/expiring.h"

BROKEN(wilting, expiring_use(&ops, EXPIRING_EARLY))

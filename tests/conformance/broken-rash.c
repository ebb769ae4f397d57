/* SPDX-License-Identifier: Apache-2.0
 *
 * Delays, and not for as long as it is told.
 */
#include "config.h"

#include "tests/conformance/delaying.h"

BROKEN(rash, delaying_use(&descriptor, &ops, DELAYING_EARLY))

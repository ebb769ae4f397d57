/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the largest prefetch that it was ever told.
 */
#include "config.h"

#include "tests/conformance/ahead.h"

BROKEN(stubborn, ahead_use(&ops, AHEAD_NEVER_SHRINKS))

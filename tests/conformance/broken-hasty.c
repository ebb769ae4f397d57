/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives back what it has ahead when it stops, which counts as a delivery.
 */
#include "config.h"

#include "tests/conformance/ahead.h"

BROKEN(hasty, ahead_use(&ops, AHEAD_STOP_GIVES_BACK))

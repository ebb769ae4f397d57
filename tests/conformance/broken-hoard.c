/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads ahead by the number of messages, whatever their size.
 */
#include "config.h"

#include "tests/conformance/ahead.h"

BROKEN(hoard, ahead_use(&ops, AHEAD_HAS_NO_BOUND))

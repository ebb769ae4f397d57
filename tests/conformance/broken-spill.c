/* SPDX-License-Identifier: Apache-2.0
 *
 * Of what it has ahead it loses a message when it gives the rest up.
 */
#include "config.h"

#include "tests/conformance/ahead.h"

BROKEN(spill, ahead_use(&ops, AHEAD_RELEASE_LOSES_ONE))

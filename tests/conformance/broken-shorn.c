/* SPDX-License-Identifier: Apache-2.0
 *
 * What it delays comes without one of its headers.
 */
#include "config.h"

#include "tests/conformance/delaying.h"

BROKEN(shorn, delaying_use(&descriptor, &ops, DELAYING_LOSES_HEADERS))

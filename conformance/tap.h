/* SPDX-License-Identifier: Apache-2.0
 *
 * TAP, as the kits print it. What a plugin, a server or a file says stands in it, whatever bytes
 * that are: it can neither begin a line nor say something that a reader takes for a verdict, a
 * directive or a command of his terminal's (escapes: core/base/printable.h).
 */
#ifndef WB_CONFORMANCE_TAP_H
#define WB_CONFORMANCE_TAP_H

#include <stddef.h>
#include <stdio.h>

void wb_tap_plan(FILE *out, size_t count);
/** `name` may hold anything; `skip` is NULL, or why it was skipped. */
void wb_tap_case(FILE *out, int is_ok, size_t number, const char *name, const char *skip);
/** A comment, of as many lines as the text has. */
void wb_tap_note(FILE *out, const char *text);
void wb_tap_bail_out(FILE *out, const char *text);

#endif

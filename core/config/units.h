/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations and sizes as people write them: a whole number and a unit, "20ms", "7d",
 * "16MiB". A unit is required, except after 0.
 */
#ifndef WB_CONFIG_UNITS_H
#define WB_CONFIG_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define WB_UNIT_OK 0
#define WB_UNIT_MALFORMED 1 /* not a number with a known unit */
#define WB_UNIT_OVERFLOW 2  /* more than an int64_t holds */

/** Nanoseconds from ns, us, ms, s, min (or m), h, d. */
int wb_duration_parse(const char *text, int64_t *ret_nanoseconds);
/** Bytes from B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024). */
int wb_size_parse(const char *text, int64_t *ret_bytes);

/** Nanoseconds since 1970 from a time in UTC, "2026-12-31T08:00:00Z" with or without a fraction
 *  of a second; a blank may stand for the T. */
int wb_time_parse(const char *text, int64_t *ret_time);

#define WB_UNIT_TEXT_SIZE 32
/** The shortest exact text: "7d", "1500ms". */
const char *wb_duration_format(int64_t nanoseconds, char text[WB_UNIT_TEXT_SIZE]);
/** "16MiB", "1000B". */
const char *wb_size_format(int64_t bytes, char text[WB_UNIT_TEXT_SIZE]);

#endif

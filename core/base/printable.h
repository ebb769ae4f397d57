/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of others on its way to a log or a terminal. What would be obeyed there instead of shown is
 * replaced by an escape, so that no message forges a line, moves the cursor or turns the reading
 * order around:
 *
 *   \n, \xNN   bytes: control characters, DEL, and each byte that belongs to no character of UTF-8
 *   \uNNNN     characters: U+0080 to U+009F (C1), U+2028, U+2029, and those that set a direction
 *
 * All else stays as it is, in whatever script.
 */
#ifndef WB_BASE_PRINTABLE_H
#define WB_BASE_PRINTABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** The size of the character of UTF-8 (RFC 3629) that starts at `at`, with `left` bytes to go, or 0 if
 *  there is none. `ret_code` may be NULL. */
size_t wb_utf8_size(const unsigned char *at, size_t left, uint32_t *ret_code);

/** So many times its size a text may have as UTF-8. */
#define WB_UTF8_LONGER 3
/** Copy a text, U+FFFD in the place of each byte that belongs to no character; it ends before the first character that does
 *  not fit. @return the size without the NUL byte, which is always there: `room` is not 0. */
size_t wb_utf8_copy(const char *text, char *to, size_t room);

/** Room for one piece with its NUL byte. */
#define WB_PRINTABLE_SIZE 8

/** The first character of a text, or the escape in its place. @return the bytes of `text` it stands
 *  for; 0: there are none. */
size_t wb_printable_next(const char *text, size_t size, char ret_piece[WB_PRINTABLE_SIZE]);

/** Whether a text is shown as it is. Empty is. */
int wb_printable_is(const char *text, size_t size);

/** Copy a text; it ends before the first piece that does not fit. @return the size without the NUL
 *  byte, which is always there: `room` is not 0. */
size_t wb_printable_copy(const char *text, size_t size, char *to, size_t room);

void wb_printable_print(FILE *stream, const char *text, size_t size);

#endif

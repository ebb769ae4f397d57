/* SPDX-License-Identifier: Apache-2.0
 *
 * The literals we write into SQL text.
 *
 * A value becomes a decimal number, hexadecimal digits, or, if each of its bytes is printable
 * ASCII (0x20 to 0x7e) and neither ' nor \, itself between single quotes. None can end its
 * literal, or mean something else, whatever the server's sql_mode and the connection's
 * character set:
 * - only ' ends a string that ' began (ANSI_QUOTES is about "), and it has none;
 * - only \ begins an escape, in those modes that have escapes at all, and it has none;
 * - only a byte above 0x7f begins a character of several bytes, in gbk, sjis and whatever else
 *   a client may use (utf16, utf32 and ucs2 it may not), so that each byte is a character,
 *   the closing quote too. In front of the literal stands text of ours;
 * - behind an introducer (_utf8mb4, _binary) the server takes the bytes as they are.
 * With the introducer either form has the same type: a string, also where a number is wanted.
 *
 * Names in this plugin begin with mys_, because mysql_ is the client library's.
 */
#ifndef MYSQL_MEMORY_H
#define MYSQL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "plugins/common/sql/buffer.h"

/** May these bytes stand between single quotes as they are? */
int mys_is_plain(const void *data, size_t size);
/** _binary '...' or _binary x'...': a string of bytes without character set. */
void mys_buffer_put_bytes(wb_sql_buffer *buffer, const void *data, size_t size);
/** _utf8mb4 '...' or _utf8mb4 x'...': a string of characters. */
void mys_buffer_put_string(wb_sql_buffer *buffer, const void *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-memory.h"

#include <string.h>

/* Digits come in pairs, from a table: 100 KB a batch pass through here. */
#define ROW(first)                                                                                 \
    first "0" first "1" first "2" first "3" first "4" first "5" first "6" first "7" first          \
          "8" first "9" first "a" first "b" first "c" first "d" first "e" first "f"
static const char pairs[] = ROW("0") ROW("1") ROW("2") ROW("3") ROW("4") ROW("5") ROW("6") ROW("7")
    ROW("8") ROW("9") ROW("a") ROW("b") ROW("c") ROW("d") ROW("e") ROW("f");

static void put_hex(wb_sql_buffer *buffer, const unsigned char *data, size_t size)
{
    if (size > SIZE_MAX / 8 || wb_sql_buffer_reserve(buffer, 2 * size) != 0) {
        buffer->failed = 1;
        return;
    }
    char *to = buffer->data + buffer->size;
    for (size_t i = 0; i < size; i++, to += 2)
        memcpy(to, pairs + (size_t)data[i] * 2, 2);
    buffer->size += 2 * size;
}

/* A bit for each byte of a word; whatever the order of bytes. */
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Is each of the eight bytes one that may stand between quotes as it is? No sum leaves its
 * byte where the byte is ASCII; where one is not, ~word already says no. */
static int is_plain_word(uint64_t word)
{
    const uint64_t printable = (word + EACH(0x60)) & ~(word + EACH(1)) & ~word;
    const uint64_t no_quote = (word ^ EACH('\'')) + EACH(0x7f);
    const uint64_t no_backslash = (word ^ EACH('\\')) + EACH(0x7f);
    return (printable & no_quote & no_backslash & EACH(0x80)) == EACH(0x80);
}

int mys_is_plain(const void *data, size_t size)
{
    const unsigned char *from = data;
    uint64_t word;

    for (; size >= sizeof word; size -= sizeof word, from += sizeof word) {
        memcpy(&word, from, sizeof word);
        if (!is_plain_word(word))
            return 0;
    }
    word = EACH(' ');
    if (size)
        memcpy(&word, from, size);
    return is_plain_word(word);
}

/* Not '' for an empty value: under EMPTY_STRING_IS_NULL that is NULL. */
static void put_literal(wb_sql_buffer *buffer, const void *data, size_t size)
{
    if (size && mys_is_plain(data, size)) {
        wb_sql_buffer_put(buffer, "'", 1);
        wb_sql_buffer_put(buffer, data, size);
    } else {
        wb_sql_buffer_put(buffer, "x'", 2);
        put_hex(buffer, data, size);
    }
    wb_sql_buffer_put(buffer, "'", 1);
}

void mys_buffer_put_bytes(wb_sql_buffer *buffer, const void *data, size_t size)
{
    wb_sql_buffer_put_text(buffer, "_binary ");
    put_literal(buffer, data, size);
}

void mys_buffer_put_string(wb_sql_buffer *buffer, const void *data, size_t size)
{
    wb_sql_buffer_put_text(buffer, "_utf8mb4 ");
    put_literal(buffer, data, size);
}

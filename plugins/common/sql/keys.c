/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/keys.h"

#define UUID_SIZE 16
#define COMPACT_SIZE (1 + UUID_SIZE)
#define CANONICAL_SIZE WB_SQL_KEY_ROOM

static int follows_dash(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

/* In lower case only: an id in upper case is another id. -1: it is none. */
static int value_of(unsigned char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* @return whether it is a canonical UUID. */
static int shorten(const unsigned char *text, unsigned char *key)
{
    key[0] = WB_SQL_KEY_TAG;
    for (size_t i = 0; i < UUID_SIZE; i++, text += 2) {
        if (follows_dash(i) && *text++ != '-')
            return 0;
        const int high = value_of(text[0]), low = value_of(text[1]);
        if (high < 0 || low < 0)
            return 0;
        key[1 + i] = (unsigned char)(high * 16 + low);
    }
    return 1;
}

static void lengthen(const unsigned char *key, unsigned char *text)
{
    static const unsigned char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < UUID_SIZE; i++) {
        if (follows_dash(i))
            *text++ = '-';
        *text++ = digits[key[1 + i] >> 4];
        *text++ = digits[key[1 + i] & 15];
    }
}

wb_sql_key wb_sql_key_exchange(const void *id, size_t size, unsigned char room[WB_SQL_KEY_ROOM])
{
    const unsigned char *bytes = id;

    if (size == CANONICAL_SIZE && shorten(bytes, room))
        return (wb_sql_key){ room, COMPACT_SIZE };
    if (size != COMPACT_SIZE || bytes[0] != WB_SQL_KEY_TAG)
        return (wb_sql_key){ id, size };
    lengthen(bytes, room);
    return (wb_sql_key){ room, CANONICAL_SIZE };
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Compact keys: how a deduplication table holds ids.
 *
 * Nearly all ids are UUIDs in their canonical form, 36 characters for 16 bytes. The key of such an
 * id is a tag and the 16 bytes; the key of what is a tag and 16 bytes already is the canonical UUID,
 * which no other id needs; the key of any other id is the id. So each id has a key of its own, none
 * is longer than its id may be, and the same exchange leads from a key back to its id.
 *
 * Pure: no memory, no errors.
 */
#ifndef WB_COMMON_SQL_KEYS_H
#define WB_COMMON_SQL_KEYS_H

#include <stddef.h>

/** The first byte of a UUID's key; text, being UTF-8, does not have it. Stored: never changes. */
#define WB_SQL_KEY_TAG 0xff
/** Room for either form of a UUID. */
#define WB_SQL_KEY_ROOM 36

typedef struct wb_sql_key {
    const void *data;
    size_t size;
} wb_sql_key;

/** The compact key of an id, or the id of a compact key. It is in `room`, or the argument itself. */
wb_sql_key wb_sql_key_exchange(const void *id, size_t size, unsigned char room[WB_SQL_KEY_ROOM]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a SQLite result code means for a caller: class, cause and remedy.
 */
#ifndef WB_SQLITE_MAP_H
#define WB_SQLITE_MAP_H

typedef struct db_meaning {
    int code;           /* primary result code */
    int result;         /* WB_x */
    int cause;          /* WB_CAUSE_x */
    const char *remedy; /* appended to the text; may be empty */
} db_meaning;

/** Never NULL; takes extended codes as well. */
const db_meaning *db_meaning_of(int code);

#endif

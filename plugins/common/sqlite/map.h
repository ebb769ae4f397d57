/* SPDX-License-Identifier: Apache-2.0
 *
 * What a SQLite result code means for a caller: class, cause and remedy, and whose fault it
 * is. README.md prints the table.
 */
#ifndef WB_SQLITE_MAP_H
#define WB_SQLITE_MAP_H

typedef struct wb_sqlite_db_meaning {
    int code;           /* primary result code */
    int result;         /* WB_x, when a statement of ours got it */
    int cause;          /* WB_CAUSE_x */
    int is_servers;     /* the server's fault also when a handler's own statement got it */
    const char *remedy; /* appended to the text; may be empty */
} wb_sqlite_db_meaning;

/** Never NULL; takes extended codes as well. */
const wb_sqlite_db_meaning *wb_sqlite_db_meaning_of(int code);

/** The same for an errno of a file beside the database; `code` is the errno. */
wb_sqlite_db_meaning wb_sqlite_db_meaning_of_errno(int number);

#endif

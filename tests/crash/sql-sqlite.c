/* SPDX-License-Identifier: Apache-2.0
 *
 * sql-sqlite FILE: run the SQL on stdin and print its rows, columns separated by tabs;
 * blobs in hexadecimal, NULL as nothing. pause(MS) is a function, for transactions that take
 * their time. The suite's own way to SQLite files.
 */
#include "config.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static void print_column(sqlite3_stmt *statement, int column)
{
    const unsigned char *bytes = sqlite3_column_blob(statement, column);
    int size = sqlite3_column_bytes(statement, column);
    int is_blob = sqlite3_column_type(statement, column) == SQLITE_BLOB;
    for (int i = 0; i < size; i++)
        printf(is_blob ? "%02x" : "%c", bytes[i]);
}

static int print_rows(sqlite3_stmt *statement)
{
    int r, columns = sqlite3_column_count(statement);
    while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < columns; i++) {
            print_column(statement, i);
            putchar(i + 1 < columns ? '\t' : '\n');
        }
    }
    sqlite3_finalize(statement);
    return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int run(sqlite3 *db, const char *sql)
{
    int r = SQLITE_OK;
    while (r == SQLITE_OK && *sql) {
        sqlite3_stmt *statement = NULL;
        r = sqlite3_prepare_v2(db, sql, -1, &statement, &sql);
        if (r == SQLITE_OK && statement)
            r = print_rows(statement);
    }
    if (r != SQLITE_OK)
        fprintf(stderr, "%s\n", sqlite3_errmsg(db));
    return r;
}

static char *read_all(FILE *file)
{
    size_t size = 0, room = 1 << 16;
    char *text = malloc(room);
    while (text) {
        size += fread(text + size, 1, room - size - 1, file);
        if (feof(file) || ferror(file))
            break;
        text = realloc(text, room *= 2);
    }
    if (text)
        text[size] = '\0';
    return text;
}

static void pause_ms(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_int(context, sqlite3_sleep(sqlite3_value_int(values[0])));
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;
    char *sql = argc == 2 ? read_all(stdin) : NULL;
    int r = SQLITE_ERROR;

    if (!sql) {
        fprintf(stderr, "usage: sql-sqlite FILE <statements\n");
        return 64;
    }
    if (sqlite3_open(argv[1], &db) == SQLITE_OK) {
        sqlite3_busy_timeout(db, 30000);
        sqlite3_create_function(db, "pause", 1, SQLITE_UTF8, NULL, pause_ms, NULL, NULL);
        r = run(db, sql);
    }
    sqlite3_close(db);
    free(sql);
    return r == SQLITE_OK ? 0 : 1;
}

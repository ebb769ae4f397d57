/* SPDX-License-Identifier: Apache-2.0
 *
 * sql-sqlite: run SQL on SQLite files and print the rows, columns separated by tabs; blobs in hexadecimal, NULL as nothing.
 * pause(MS) is a function, for transactions that take their time. The suites' own way to SQLite files.
 *
 * A program asks many times a second, and to start one for each question costs more than the answer: so there are many
 * of them on stdin, each "FILE", a tab, the size of the SQL, a newline, the SQL; each is answered by the size of the rows, a
 * tab, the reason why it failed or nothing, a newline, the rows. A file is open while it is asked, for others remove it.
 */
#include "config.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Twenty megabytes take a moment, and the file may be locked for as long. */
static void print_hexadecimal(FILE *rows, const unsigned char *bytes, int size)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < size; i++) {
        (void)putc_unlocked(digits[bytes[i] >> 4], rows);
        (void)putc_unlocked(digits[bytes[i] & 15], rows);
    }
}

static void print_column(FILE *rows, sqlite3_stmt *statement, int column)
{
    if (sqlite3_column_type(statement, column) == SQLITE_BLOB) {
        const unsigned char *bytes = sqlite3_column_blob(statement, column);
        print_hexadecimal(rows, bytes, sqlite3_column_bytes(statement, column));
    } else {
        const unsigned char *text = sqlite3_column_text(statement, column); /* UTF-8, whatever the file's encoding */
        (void)fwrite(text, 1, (size_t)sqlite3_column_bytes(statement, column), rows);
    }
}

static int print_rows(FILE *rows, sqlite3_stmt *statement)
{
    int r, columns = sqlite3_column_count(statement);
    while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < columns; i++) {
            print_column(rows, statement, i);
            (void)fputc(i + 1 < columns ? '\t' : '\n', rows);
        }
    }
    sqlite3_finalize(statement);
    return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int run(FILE *rows, sqlite3 *db, const char *sql)
{
    int r = SQLITE_OK;
    while (r == SQLITE_OK && *sql) {
        sqlite3_stmt *statement = NULL;
        r = sqlite3_prepare_v2(db, sql, -1, &statement, &sql);
        if (r == SQLITE_OK && statement)
            r = print_rows(rows, statement);
    }
    return r;
}

static void pause_ms(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_int(context, sqlite3_sleep(sqlite3_value_int(values[0])));
}

/* Of the reason one line is told. */
static int answer(const char *name, const char *sql)
{
    sqlite3 *db = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *rows = open_memstream(&text, &size);
    if (!rows)
        return -1;
    int r = sqlite3_open(name, &db);
    if (r == SQLITE_OK) {
        sqlite3_busy_timeout(db, 30000);
        sqlite3_create_function(db, "pause", 1, SQLITE_UTF8, NULL, pause_ms, NULL, NULL);
        r = run(rows, db, sql);
    }
    (void)fclose(rows);
    printf("%zu\t%.*s\n", size, r == SQLITE_OK ? 0 : (int)strcspn(sqlite3_errmsg(db), "\n"), sqlite3_errmsg(db));
    sqlite3_close(db);
    (void)fwrite(text, 1, size, stdout);
    free(text);
    return fflush(stdout);
}

/* @return 0, or -1 at the end of what is asked. */
static int serve(void)
{
    char name[4096];
    size_t size;
    if (scanf("%4095[^\t]\t%zu", name, &size) != 2 || getchar() != '\n')
        return -1;
    char *sql = malloc(size + 1);
    int r = sql && fread(sql, 1, size, stdin) == size ? 0 : -1;
    if (r == 0) {
        sql[size] = '\0';
        r = answer(name, sql);
    }
    free(sql);
    return r;
}

int main(void)
{
    while (serve() == 0)
        ;
    return feof(stdin) ? 0 : 1;
}

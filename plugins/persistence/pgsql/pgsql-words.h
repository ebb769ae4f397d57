/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a server's error may be told: it becomes a line of the log and a header of the message in
 * the error queue, and no value of a message or a row is to get there. DETAIL, HINT and CONTEXT never do.
 * The primary message does, unless errors of its kind quote values ('invalid input syntax for type
 * integer: "..."') or the text of a statement, which somebody may have pasted a value into; then words
 * of our own stand in its place, with the names that the server reports apart. Names of tables, columns
 * and constraints are no values.
 *
 * What RAISE says is its author's choice, as what wb_fail() says is a handler's.
 */
#ifndef PGSQL_WORDS_H
#define PGSQL_WORDS_H

#include <libpq-fe.h>
#include <stddef.h>

/** The message alone: the server's, or ours. Never NULL; valid as long as `result`. */
const char *pgsql_words_of(const PGresult *result);

/** A whole sentence with the SQLSTATE. */
void pgsql_words_describe(const PGresult *result, char *text, size_t size);

#endif

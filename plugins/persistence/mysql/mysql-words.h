/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a server's error may be told: it becomes a line of the log and a header of the message in
 * the error queue, and no value of a message or a row is to get there. The server's message does,
 * where errors of its number quote nothing but names; of others ("Duplicate entry '...' for key 'k'",
 * "near '...'") words of our own stand in its place, with the name of the key or the column. Pure.
 *
 * What SIGNAL says under SQLSTATE 45000 is its author's choice, as what wb_fail() says is a handler's.
 */
#ifndef MYSQL_WORDS_H
#define MYSQL_WORDS_H

#include <stddef.h>

#define MYS_SQLSTATE_SIZE 6

/** A sentence with number and SQLSTATE. */
void mys_words_describe(unsigned code, const char *sqlstate, const char *message, char *text, size_t size);

#endif

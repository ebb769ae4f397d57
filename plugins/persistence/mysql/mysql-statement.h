/* SPDX-License-Identifier: Apache-2.0
 *
 * A deferred statement's text with literals in the place of its parameters.
 *
 * A function of its arguments alone. It reads a statement as the server does, under every
 * sql_mode (ANSI_QUOTES, NO_BACKSLASH_ESCAPES), and refuses what two modes read
 * differently: so that exactly one statement reaches the server, and what a handler
 * passes as a value can only be a value.
 */
#ifndef MYSQL_STATEMENT_H
#define MYSQL_STATEMENT_H

#include <waybill/mysql.h>

#include "plugins/persistence/mysql/mysql-memory.h"

/** Append `statement`, without comments and without a ";" at its end.
 *  @return NULL, or why it is refused: a static text; what was appended is then of no use. */
const char *mys_statement_render(const char *statement, const wb_mysql_params *params,
                                 wb_sql_buffer *text);

#endif

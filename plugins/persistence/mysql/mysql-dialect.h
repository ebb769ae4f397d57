/* SPDX-License-Identifier: Apache-2.0
 *
 * What MySQL and MariaDB are asked with: the statements of the outbox and of its installation, all
 * in mysql-dialect.c. A plugin for another server that Connector/C talks to has a file of its own
 * in its place, with a mys_dialect and MYS_PLUGIN (mysql-persistence.h), and is made of the others; the
 * README says what these take for granted of a server.
 */
#ifndef MYSQL_DIALECT_H
#define MYSQL_DIALECT_H

#include "plugins/common/sql/outbox.h"

/** The comment of procedures as they are now: others are made anew. To be counted up with each change. */
#define MYS_PROCEDURES "waybill 1"

/** MySQL's identifiers have 64 characters; our longest suffix is "_pending". */
#define MYS_IDENTIFIER_MAX 64
/** GET_LOCK() takes names of 64 characters. */
#define MYS_LOCK_NAME_SIZE 64

extern const wb_sql_quoting mys_quoting;
/** Values are written as literals where $1, $2 and so on stand. What stands in [ ] is repeated,
 *  with commas between, for each element of the lists among the parameters. */
extern const wb_sql_dialect mys_dialect;

struct wb_sql_value;
/** Append a statement with its values. Of its quoted parts nothing is replaced. */
void mys_render(const wb_sql_names *names, const char *statement,
                const struct wb_sql_value *values, size_t count, wb_sql_buffer *text);

/** The name of an advisory lock: the same in every process for the same purpose, database
 *  and, unless `prefix` is "", endpoint; a server has one space of names for all its
 *  databases. Out of letters, digits, blanks: needs no quoting inside of '...'. */
void mys_lock_name(const wb_sql_names *names, const char *purpose, const char *prefix,
                   char ret_name[MYS_LOCK_NAME_SIZE]);

#endif

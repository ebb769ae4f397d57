/* SPDX-License-Identifier: Apache-2.0
 *
 * How MySQL writes names and values, and its named locks.
 */
#ifndef MYSQL_NAMES_H
#define MYSQL_NAMES_H

#include "plugins/common/sql/names.h"

/** MySQL's identifiers have 64 characters; our longest suffix is "_pending". */
#define MYS_IDENTIFIER_MAX 64
/** GET_LOCK() takes names of 64 characters. */
#define MYS_LOCK_NAME_SIZE 64

extern const wb_sql_quoting mys_quoting;

/** The name of an advisory lock: the same in every process for the same purpose, database
 *  and, unless `prefix` is "", endpoint; a server has one space of names for all its
 *  databases. Out of letters, digits, blanks: needs no quoting inside of '...'. */
void mys_names_lock(const wb_sql_names *names, const char *purpose, const char *prefix,
                    char ret_name[MYS_LOCK_NAME_SIZE]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of the outbox' statements in PostgreSQL's binary format.
 */
#ifndef PGSQL_VALUES_H
#define PGSQL_VALUES_H

#include "plugins/common/sql/driver.h"

/** One parameter. It stays where it is: `data` may point into it. */
typedef struct pgsql_value {
    const void *data;
    size_t size; /* at most INT_MAX */
    char number[8];
} pgsql_value;

/** Parameter `i` of a statement. A list goes to session->arrays[i].
 *  @return 0, or -1: no memory. */
int pgsql_encode(wb_storage_session *session, const wb_sql_value *from, size_t i,
                 pgsql_value *ret_value);

#endif

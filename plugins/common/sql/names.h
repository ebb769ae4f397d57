/* SPDX-License-Identifier: Apache-2.0
 *
 * From an endpoint's name to the names of its tables and indexes.
 *
 * A name of at most 50 characters out of a-z, 0-9 and _ is the prefix itself. Any
 * other name is made of what can be kept of it, "$", and 16 digits of its hash: "$"
 * never occurs in a name that is kept, so the two kinds cannot meet. Two names with the
 * same hash would, which is why the prefix is stored together with the name it stands
 * for, and compared when the endpoint starts. Lower case only: what case means in a
 * name depends on the server.
 */
#ifndef WB_COMMON_SQL_NAMES_H
#define WB_COMMON_SQL_NAMES_H

#include <stddef.h>

#include "plugins/common/sql/buffer.h"
#include "plugins/common/sql/prefix.h"

/** How a server writes names and values. */
typedef struct wb_sql_quoting {
    char identifier;   /* around a name; doubled inside */
    const char *where; /* what holds the tables, and the option that says which: "schema" */
    /** Append a literal that means this text whatever the server's settings. */
    void (*put_literal)(wb_sql_buffer *text, const char *value);
} wb_sql_quoting;

typedef struct wb_sql_names {
    const wb_sql_quoting *quoting; /* kept, not copied; so are the next two */
    const char *endpoint;
    const char *container; /* the schema or database of the tables */
    char prefix[WB_SQL_PREFIX_MAX + 1];
} wb_sql_names;

void wb_sql_names_init(wb_sql_names *names, const wb_sql_quoting *quoting, const char *endpoint,
                       const char *container);

/** Append `template` to `ret_text` with every {name} replaced:
 *  {dedup}, {pending}, {delayed}, {written}, {lanes}, {positions}, {subscribed}, {endpoints}, and of what programs call
 *  {write}, {send}, {publish}, {claim}: quoted and qualified identifiers;
 *  {schema}, {dedup_batch}, {dedup_pkey}, {pending_pkey}, {delayed_pkey}, {delayed_due},
 *  {written_pkey}, {written_held}, {position_key}, and for new names of tables {dedup_name}, {pending_name},
 *  {delayed_name}, {written_name}, {positions_name}, {subscribed_name}: quoted identifiers;
 *  {endpoint}, {prefix}, {database}: literals. {schema} and {database} are the container.
 *  Any other brace is left as it is. */
void wb_sql_names_expand(const wb_sql_names *names, const char *template, wb_sql_buffer *ret_text);

/** The same, in memory of malloc(), or NULL. */
char *wb_sql_names_text(const wb_sql_names *names, const char *template);

/** The first brace of a template that begins no such name, or NULL. */
const char *wb_sql_names_unknown(const char *template);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Complete statements that wait to be sent, each with the item it belongs to.
 */
#ifndef MYSQL_LIST_H
#define MYSQL_LIST_H

#include <stddef.h>

#include "plugins/persistence/mysql/mysql-memory.h"

typedef struct mys_statement {
    size_t item;
    size_t end; /* of its text in mys_list.text; it starts where the one before ends */
} mys_statement;

/** All zero is empty. */
typedef struct mys_list {
    wb_sql_buffer text;
    mys_statement *statements;
    size_t count;
    size_t capacity;
} mys_list;

/** What was put into list->text since the last one is a statement. Out of memory, that
 *  text is dropped. @return 0, or -1: no memory. */
int mys_list_end(mys_list *list, size_t item);
/** Drop what was put since the last complete statement. */
void mys_list_drop(mys_list *list);
/** Empty it, but keep its memory, unless that is a lot. */
void mys_list_reset(mys_list *list);
void mys_list_free(mys_list *list);

#endif

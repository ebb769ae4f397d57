/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-list.h"

#include <stdlib.h>
#include <string.h>

static int grow(mys_list *list)
{
    if (list->count < list->capacity)
        return 0;
    const size_t capacity = list->capacity ? 2 * list->capacity : 128;
    mys_statement *statements = realloc(list->statements, capacity * sizeof *statements);
    if (!statements)
        return -1;
    list->statements = statements;
    list->capacity = capacity;
    return 0;
}

int mys_list_end(mys_list *list, size_t item)
{
    if (list->text.failed || grow(list) != 0) {
        mys_list_drop(list);
        return -1;
    }
    list->statements[list->count++] = (mys_statement){ .item = item, .end = list->text.size };
    return 0;
}

void mys_list_drop(mys_list *list)
{
    list->text.size = list->count ? list->statements[list->count - 1].end : 0;
    list->text.failed = 0;
}

void mys_list_reset(mys_list *list)
{
    list->count = 0;
    wb_sql_buffer_reset(&list->text);
}

void mys_list_free(mys_list *list)
{
    wb_sql_buffer_free(&list->text);
    free(list->statements);
    memset(list, 0, sizeof *list);
}

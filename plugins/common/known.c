/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/known.h"

#include <stdlib.h>
#include <string.h>

/* The place of a name, or where it belongs; *ret_found says which. */
static size_t find(const wb_common_known *known, const char *name, int *ret_found)
{
    size_t low = 0, high = known->count;
    *ret_found = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, known->names[middle].name);
        if (order == 0) {
            *ret_found = 1;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int wb_common_known_has(const wb_common_known *known, const char *name, int64_t now)
{
    int found;
    size_t at = find(known, name, &found);
    return found && known->names[at].until > now;
}

static int grow(wb_common_known *known)
{
    if (known->count < known->capacity)
        return 0;
    size_t capacity = known->capacity ? known->capacity * 2 : 16;
    wb_common_name *names = realloc(known->names, capacity * sizeof *names);
    if (!names)
        return -1;
    known->names = names;
    known->capacity = capacity;
    return 0;
}

static void insert(wb_common_known *known, size_t at, const char *name, int64_t until)
{
    char *copy = grow(known) == 0 ? strdup(name) : NULL;
    if (!copy)
        return;
    memmove(known->names + at + 1, known->names + at, (known->count - at) * sizeof *known->names);
    known->names[at] = (wb_common_name){ copy, until };
    known->count++;
}

void wb_common_known_add(wb_common_known *known, const char *name, int64_t until)
{
    int found;
    size_t at = find(known, name, &found);
    if (found) {
        known->names[at].until = until;
        return;
    }
    if (known->count >= WB_COMMON_KNOWN_MAX) {
        wb_common_known_clear(known);
        at = 0;
    }
    insert(known, at, name, until);
}

void wb_common_known_drop(wb_common_known *known, const char *name)
{
    int found;
    size_t at = find(known, name, &found);
    if (!found)
        return;
    free(known->names[at].name);
    known->count--;
    memmove(known->names + at, known->names + at + 1, (known->count - at) * sizeof *known->names);
}

void wb_common_known_clear(wb_common_known *known)
{
    for (size_t i = 0; i < known->count; i++)
        free(known->names[i].name);
    free(known->names);
    *known = (wb_common_known){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/routes.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"

static int compare_handlers(const void *a, const void *b)
{
    return strcmp((*(const wb_handler *const *)a)->type, (*(const wb_handler *const *)b)->type);
}

void wb_routes_init(wb_routes *routes, const wb_handler *const *handlers, size_t count)
{
    routes->handlers = wb_alloc(count * sizeof *routes->handlers);
    routes->count = count;
    if (count)
        memcpy(routes->handlers, handlers, count * sizeof *handlers);
    qsort(routes->handlers, count, sizeof *routes->handlers, compare_handlers);
}

void wb_routes_free(wb_routes *routes)
{
    free(routes->handlers);
    routes->handlers = NULL;
    routes->count = 0;
}

static int compare_type(const char *type, size_t size, const char *other)
{
    int order = strncmp(type, other, size);
    return order ? order : -(int)(unsigned char)other[size];
}

static const wb_handler *find_type(const wb_routes *routes, const char *type, size_t size)
{
    size_t low = 0, high = routes->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare_type(type, size, routes->handlers[middle]->type);
        if (order == 0)
            return routes->handlers[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const wb_handler *wb_routes_find(const wb_routes *routes, const wb_incoming *incoming)
{
    const wb_header *types = wb_incoming_header(incoming, WB_HEADER_TYPES);
    const char *position = types ? types->value : "";
    const wb_handler *handler = NULL;
    const char *type;
    size_t size;
    while (!handler && (type = wb_type_next(&position, &size)))
        handler = find_type(routes, type, size);
    return handler;
}

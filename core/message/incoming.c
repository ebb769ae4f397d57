/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/incoming.h"

#include <string.h>

const wb_header *wb_incoming_header(const wb_incoming *incoming, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < incoming->header_count; i++) {
        const wb_header *header = &incoming->headers[i];
        if (header->name_size == size && memcmp(header->name, name, size) == 0)
            return header;
    }
    return NULL;
}

const char *wb_type_next(const char **position, size_t *ret_size)
{
    const char *start = *position;
    start += strspn(start, "; ");
    if (!*start)
        return NULL;
    size_t size = strcspn(start, ",;");
    *position = start + strcspn(start, ";");
    while (size && start[size - 1] == ' ')
        size--;
    *ret_size = size;
    return start;
}

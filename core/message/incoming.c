/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/incoming.h"

#include <string.h>

#include "core/message/header_names.h"

const wb_header *wb_headers_find(const wb_header *headers, size_t count, const char *name,
                                 size_t name_size)
{
    for (size_t i = 0; i < count; i++)
        if (headers[i].name_size == name_size && memcmp(headers[i].name, name, name_size) == 0)
            return &headers[i];
    return NULL;
}

int wb_header_is_platforms(const wb_header *header)
{
    static const char *const prefixes[] = { "NServiceBus.", "$.diagnostics.", "Waybill." };
    static const char *const names[] = { WB_HEADER_TRACE_PARENT, WB_HEADER_TRACE_STATE, WB_HEADER_BAGGAGE };
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(header->name, prefixes[i], strlen(prefixes[i])) == 0)
            return 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(header->name, names[i]) == 0)
            return 1;
    return 0;
}

const char *wb_headers_type(const wb_header *headers, size_t count, char text[WB_TYPE_SIZE])
{
    const wb_header *types = WB_HEADERS_FIND(headers, count, WB_HEADER_TYPES);
    const char *position = types ? types->value : "";
    size_t size;
    return wb_type_next(&position, text, &size);
}

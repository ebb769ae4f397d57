/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/types_of.h"

#include <string.h>

const char *wb_common_types_of(const wb_operation *operation)
{
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        if (header->name && header->value && strcmp(header->name, "NServiceBus.EnclosedMessageTypes") == 0)
            return header->value;
    }
    return "";
}

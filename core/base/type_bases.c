/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/type_bases.h"

#include <string.h>
#include <waybill/sys/types.h>

const wb_type_bases *wb_type_bases_find(const wb_type_bases *bases, size_t count, const char *type)
{
    char name[WB_TYPE_SIZE];
    size_t size;
    if (!count || !wb_type_next(&type, name, &size))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(bases[i].type, name) == 0)
            return &bases[i];
    return NULL;
}

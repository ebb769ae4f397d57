/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/silences.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"

int wb_silences_has(const wb_silences *silences, const char *destination)
{
    for (size_t i = 0; i < silences->count; i++)
        if (strcmp(silences->destinations[i], destination) == 0)
            return 1;
    return 0;
}

void wb_silences_add(wb_silences *silences, const char *destination)
{
    size_t size = strlen(destination) + 1;
    if (silences->count == WB_SILENCES_MAX || wb_silences_has(silences, destination))
        return;
    silences->destinations[silences->count++] = memcpy(wb_alloc(size), destination, size);
}

void wb_silences_free(wb_silences *silences)
{
    while (silences->count)
        free(silences->destinations[--silences->count]);
}

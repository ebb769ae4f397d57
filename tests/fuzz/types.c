/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of types as a peer enumerates them: names have a bound, and a list of the names that were
 * read is read as the same names.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <waybill/sys/types.h>

#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "types";

/* What all names together take, with a semicolon behind each, is never more than the list did. */
static char *read_names(const char *list)
{
    char *all = fuzz_alloc(strlen(list) + 2), *at = all;
    char *name = fuzz_alloc(WB_TYPE_SIZE);
    size_t size = 0;
    while (wb_type_next(&list, name, &size)) {
        FUZZ_CHECK(size > 0 && size < WB_TYPE_SIZE && strlen(name) == size);
        memcpy(at, name, size);
        at += size;
        *at++ = ';';
    }
    *at = '\0';
    return all;
}

void fuzz_one(const void *data, size_t size)
{
    const char *names = read_names(fuzz_copy(data, size));
    FUZZ_CHECK(strcmp(read_names(names), names) == 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/persistence/apart.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/bytes.h"

int wb_client_find_all(wb_client *client, const wb_claim *expected, size_t count)
{
    wb_claim *asked = wb_alloc_zero(count, sizeof *asked);
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < count; i++)
        asked[i] = (wb_claim){ expected[i].id, expected[i].id_size, WB_NOT_ANSWERED };
    wb_error_clear(&client->error);
    int good = wb_client_check(client, client->ops->find(client->session, asked, count, &client->error), WB_OK, "find");
    for (size_t i = count; good && i-- > 0;)
        if (asked[i].duplicate_of != expected[i].duplicate_of) {
            wrong++;
            first = i;
        }
    if (wrong)
        good = wb_kit_check(client->kit, 0, "of %zu ids %zu have the wrong record: \"%.*s\" of %" PRIu64 ", not of %" PRIu64
                            " (0: none)", count, wrong, (int)asked[first].id_size, (const char *)asked[first].id,
                            asked[first].duplicate_of, expected[first].duplicate_of);
    free(asked);
    return good;
}

int wb_client_finds(wb_client *client, const char *id, uint64_t owner)
{
    const wb_claim claim = { id, strlen(id), owner };
    return wb_client_find_all(client, &claim, 1);
}

wb_claim *wb_ids_make_many(wb_kit *kit)
{
    char(*ids)[16] = wb_alloc_zero(MANY, sizeof *ids);
    wb_claim *claims = wb_alloc_zero(MANY, sizeof *claims);
    wb_kit_defer(kit, free, ids);
    wb_kit_defer(kit, free, claims);
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "order-%05zu", i);
        claims[i] = (wb_claim){ ids[i], strlen(ids[i]), 0 };
    }
    return claims;
}

#define UUID "c0ffee00-1234-7abc-8def-0123456789ab"
#define UUID_BYTES "\xc0\xff\xee\x00\x12\x34\x7a\xbc\x8d\xef\x01\x23\x45\x67\x89\xab"

static int compare_ids(const void *left, const void *right)
{
    const wb_claim *a = left, *b = right;
    return wb_bytes_compare(a->id, a->id_size, b->id, b->id_size);
}

void wb_ids_make_odd(wb_claim claims[ODD])
{
    static char longest[2][255];
    for (int i = 0; i < 2; i++) {
        memset(longest[i], 'n', sizeof longest[i]);
        longest[i][254] = (char)(i ? 0xff : 0);
    }
    const wb_claim made[ODD] = {
        OF("order", 0), OF("ORDER", 0), OF(" order", 0), OF("order ", 0), OF("order  ", 0), OF("order\0", 0),
        OF("order\0a", 0), OF("order\0b", 0), OF("\0", 0), OF("'", 0), OF("\\", 0), OF("\xff", 0),
        OF(UUID, 0), OF("C0FFEE00-1234-7ABC-8DEF-0123456789AB", 0), OF("c0ffee00-1234-7abc-8def-0123456789AB", 0),
        OF(UUID " ", 0), OF(UUID_BYTES, 0), OF("\xff" UUID_BYTES, 0), { longest[0], 255, 0 }, { longest[1], 255, 0 },
    };
    memcpy(claims, made, sizeof made);
    qsort(claims, ODD, sizeof *claims, compare_ids);
}

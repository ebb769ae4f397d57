/* SPDX-License-Identifier: Apache-2.0
 *
 * Compact keys: each id has a key of its own, which leads back to it and is never longer than it
 * may be.
 */
#include "config.h"

#include "plugins/common/sql/keys.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "keys";

static wb_sql_key exchange(const void *id, size_t size)
{
    unsigned char *room = fuzz_alloc(WB_SQL_KEY_ROOM);
    wb_sql_key key = wb_sql_key_exchange(id, size, room);
    return (wb_sql_key){ fuzz_copy(key.data, key.size), key.size };
}

static void check_id(const void *id, size_t size)
{
    const wb_sql_key key = exchange(id, size), back = exchange(key.data, key.size);
    FUZZ_CHECK(fuzz_is_same(back.data, back.size, id, size));
    FUZZ_CHECK(key.size <= (size > WB_SQL_KEY_ROOM ? size : WB_SQL_KEY_ROOM));
}

/* Two ids, side by side in the input, and the one in whose place the other could be. */
void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    size_t one_size, other_size;
    const char *one = fuzz_text(&input, &one_size), *other = fuzz_rest(&input, &other_size);
    check_id(data, size);
    check_id(one, one_size);
    check_id(other, other_size);
    const wb_sql_key a = exchange(one, one_size), b = exchange(other, other_size);
    FUZZ_CHECK(fuzz_is_same(one, one_size, other, other_size) == fuzz_is_same(a.data, a.size, b.data, b.size));
}

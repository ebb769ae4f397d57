/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows among the pending operations that are none: records of attempts, and what is parked.
 */
#include "config.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/recover/attempts.h"
#include "core/recover/parked.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "records";

/* ---- parked ------------------------------------------------------------------------------- */

static void check_parked(const wb_parked *parked)
{
    wb_buffer buffer = { 0 };
    wb_parked again = { 0 }, head = { 0 };
    wb_parked_encode(&buffer, parked);
    const char *row = fuzz_copy(buffer.data, buffer.size);
    FUZZ_CHECK(wb_parked_is_row(row, buffer.size));
    FUZZ_CHECK(wb_parked_decode(row, buffer.size, &again) && wb_parked_decode_head(row, buffer.size, &head));
    FUZZ_CHECK(again.tries == parked->tries && head.tries == parked->tries);
    FUZZ_CHECK(strcmp(again.reason, parked->reason) == 0 && strcmp(head.reason, parked->reason) == 0);
    FUZZ_CHECK(fuzz_is_same(again.operations, again.operations_size, parked->operations, parked->operations_size));
    wb_buffer_free(&buffer);
}

static void try_parked(const void *data, size_t size)
{
    wb_parked parked = { 0 }, head = { 0 };
    const int has_reason = wb_parked_decode_head(data, size, &head);
    FUZZ_CHECK(!has_reason == !head.reason);
    if (!wb_parked_decode(data, size, &parked))
        return;
    FUZZ_CHECK(has_reason);
    check_parked(&parked);
    const int64_t pause = wb_parked_pause(WB_SECOND, parked.tries);
    FUZZ_CHECK(pause >= WB_SECOND && pause <= 3600 * WB_SECOND);
}

/* ---- attempts ----------------------------------------------------------------------------- */

static void check_attempts(const char *id, size_t size, uint32_t attempts, uint64_t now)
{
    wb_buffer buffer = { 0 };
    const char *other = fuzz_copy(id, size + 1); /* its NUL is the id's, too */
    wb_attempts_encode(&buffer, id, size, attempts, now);
    const char *row = fuzz_copy(buffer.data, buffer.size);
    FUZZ_CHECK(wb_attempts_is_record(row, buffer.size));
    FUZZ_CHECK(wb_attempts_decode(row, buffer.size, id, size) == (int64_t)attempts);
    FUZZ_CHECK(wb_attempts_decode(row, buffer.size, other, size + 1) == -1);
    FUZZ_CHECK(!wb_attempts_is_older(row, buffer.size, now));
    FUZZ_CHECK(now == UINT64_MAX || wb_attempts_is_older(row, buffer.size, now + 1));
    const uint64_t number = wb_attempts_number(id, size);
    FUZZ_CHECK(number != 0 && number < UINT64_C(1) << 40);
    wb_buffer_free(&buffer);
}

static void try_attempts(const void *data, size_t size)
{
    static const char ids[][4] = { "", "a", "id" };
    const int is_record = wb_attempts_is_record(data, size);
    FUZZ_CHECK(is_record || !wb_attempts_is_older(data, size, UINT64_MAX));
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        FUZZ_CHECK(is_record || wb_attempts_decode(data, size, ids[i], strlen(ids[i])) == -1);
}

void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    wb_parked parked = { 0 };
    size_t id_size;
    try_parked(data, size);
    try_attempts(data, size);
    const uint64_t now = fuzz_large(&input);
    parked.tries = fuzz_number(&input);
    const char *id = fuzz_text(&input, &id_size);
    check_attempts(id, id_size, parked.tries, now);
    parked.reason = id;
    parked.operations = fuzz_rest(&input, &parked.operations_size);
    check_parked(&parked);
}

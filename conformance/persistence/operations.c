/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: pending operations come back as they were stored.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

/* Every byte value, in an order that has no short period. */
static unsigned char *make_bytes(wb_kit *kit, size_t size)
{
    unsigned char *bytes = wb_alloc(size);
    wb_kit_defer(kit, free, bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    return bytes;
}

static void come_back(wb_kit *kit, size_t size)
{
    wb_claim claim = WB_CLAIM("order-1");
    unsigned char *bytes = make_bytes(kit, size);
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_takes(a, WB_BATCH(1), &claim, 1) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), bytes, size), WB_OK, "commit"))
        return;
    wb_client_finds_pending(b, WB_BATCH(1), bytes, size);
}

#define COME_BACK(function, size)                                                                  \
    static void function(wb_kit *kit)                                                              \
    {                                                                                              \
        come_back(kit, (size));                                                                    \
    }

COME_BACK(none, 0)
COME_BACK(one_byte, 1)
COME_BACK(more_than_4000, 4001)
COME_BACK(more_than_8_kib, 8193)
COME_BACK(more_than_64_kib, 65537)
COME_BACK(one_mib, 1048576)

/* Servers have limits. Over one, the batch can never succeed: it is refused as such and
 * rolled back, and the session goes on. */
static void sixteen_mib(wb_kit *kit)
{
    const size_t size = 16777216;
    wb_claim claim = WB_CLAIM("order-1");
    unsigned char *bytes = make_bytes(kit, size);
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_takes(a, WB_BATCH(1), &claim, 1))
        return;
    int r = wb_client_commit(a, WB_BATCH(1), bytes, size);
    if (r == WB_OK) {
        wb_client_finds_pending(a, WB_BATCH(1), bytes, size);
        return;
    }
    wb_kit_check(kit, r == WB_REJECT && a->error.cause == WB_CAUSE_TOO_LARGE,
                 "a commit of 16 MiB is %s, cause %d: %s", wb_result_name(r), a->error.cause,
                 a->error.text);
    wb_client_finds_owner(a, "order-1", 7, 0);
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
    wb_client_stores(a, WB_BATCH(2), "order-1", "operations");
}

/* ---- several --------------------------------------------------------------------------- */

static int store_three(wb_client *a)
{
    return wb_client_stores(a, WB_BATCH(1), "order-1", "one") &&
           wb_client_stores(a, WB_BATCH(2), "order-2", "two") &&
           wb_client_stores(a, WB_BATCH(3), "order-3", "three");
}

static int has(const wb_found *found, uint64_t batch)
{
    size_t times = 0;
    for (size_t i = 0; i < found->count; i++)
        times += found->batches[i] == batch;
    return times == 1;
}

static void absent_ones_are_passed_over(wb_kit *kit)
{
    const uint64_t asked[] = { WB_BATCH(3), WB_BATCH(9), WB_BATCH(1), 1 };
    wb_found found;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_three(a))
        return;
    int r = wb_client_pending(a, asked, 4, &found);
    free(found.operations);
    wb_client_check(a, r, WB_OK, "read pending rows");
    wb_kit_check(kit, found.count == 2 && has(&found, WB_BATCH(1)) && has(&found, WB_BATCH(3)),
                 "of 2 rows that are there and 2 that are not %zu were visited", found.count);
}

static void none_asked(wb_kit *kit)
{
    wb_found found;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_three(a))
        return;
    wb_client_check(a, wb_client_pending(a, NULL, 0, &found), WB_OK, "ask for no row");
    wb_kit_check(kit, found.count == 0, "nothing was asked for and something visited");
}

static void hundreds_asked(wb_kit *kit)
{
    uint64_t asked[1000];
    wb_found found;
    wb_client *a = wb_client_open(kit, 0);
    for (uint64_t i = 0; i < 1000; i++)
        asked[i] = WB_BATCH(1000 - i);
    if (!a || !store_three(a))
        return;
    wb_client_check(a, wb_client_pending(a, asked, 1000, &found), WB_OK, "read pending rows");
    free(found.operations);
    wb_kit_check(kit, found.count == 3, "%zu of 3 rows were visited", found.count);
}

static int stop_at_first(void *argument, const wb_pending *row)
{
    (void)row;
    ++*(size_t *)argument;
    return WB_REJECT;
}

static void visitor_may_stop(wb_kit *kit)
{
    const uint64_t asked[] = { WB_BATCH(1), WB_BATCH(2), WB_BATCH(3) };
    size_t visits = 0;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_three(a))
        return;
    int r = a->ops->pending(a->session, asked, 3, stop_at_first, &visits, &a->error);
    wb_kit_check(kit, visits == 1, "a visitor that had enough was called %zu times", visits);
    wb_client_check(a, r, WB_REJECT, "hand on what the visitor said");
    visits = 0;
    r = a->ops->sweep(a->session, WB_BATCH_END, 10, stop_at_first, &visits, &a->error);
    wb_kit_check(kit, visits == 1, "a sweeping visitor that had enough was called %zu times", visits);
    wb_client_check(a, r, WB_REJECT, "hand on what the visitor said");
    wb_client_finds_pending(a, WB_BATCH(1), "one", 3);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "operations of no bytes are a pending row of no bytes", OUTBOX, none },
    { "operations of 1 byte come back", OUTBOX, one_byte },
    { "operations of 4001 bytes come back", OUTBOX, more_than_4000 },
    { "operations of more than 8 KiB come back", OUTBOX, more_than_8_kib },
    { "operations of more than 64 KiB come back", OUTBOX, more_than_64_kib },
    { "operations of 1 MiB come back", OUTBOX, one_mib },
    { "operations of 16 MiB come back, or are refused as too large", OUTBOX, sixteen_mib },
    { "pending() passes over batches that have no row", OUTBOX, absent_ones_are_passed_over },
    { "pending() of nothing visits nothing", OUTBOX, none_asked },
    { "pending() of a thousand batches visits those with a row", OUTBOX, hundreds_asked },
    { "a visitor may stop", OUTBOX, visitor_may_stop },
};
const wb_kit_group wb_cases_operations = WB_KIT_GROUP(cases);

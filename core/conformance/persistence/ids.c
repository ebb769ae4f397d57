/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: ids are compared byte for byte. Each case is a list of ids that some
 * database takes for one.
 */
#include "config.h"

#include <string.h>

#include "core/conformance/persistence/persistence.h"

typedef struct {
    const char *bytes;
    size_t size;
} text;

#define T(bytes) { bytes, sizeof(bytes) - 1 }
#define IDS_MAX 16

/* In ascending order, as claims must be. One batch claims the first, the third..., so that
 * each is tried against neighbours that are there and that are not. */
static void differ(wb_kit *kit, const text *ids, size_t count)
{
    wb_claim all[IDS_MAX], odd[IDS_MAX];
    size_t odd_count = 0;
    wb_client *a = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, a != NULL, "there is no session");
    for (size_t i = 0; i < count; i++)
        all[i] = (wb_claim){ ids[i].bytes, ids[i].size, 0 };
    for (size_t i = 1; i < count; i += 2)
        odd[odd_count++] = all[i];
    if (!wb_client_takes(a, WB_BATCH(1), odd, odd_count) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit") ||
        !wb_client_check(a, wb_client_begin(a, WB_BATCH(2), all, count), WB_OK, "begin"))
        return;
    for (size_t i = 0; i < count; i++)
        wb_kit_check(kit, all[i].duplicate_of == (i % 2 ? WB_BATCH(1) : 0),
                     "id %zu of these, \"%.*s\", is %s", i, (int)ids[i].size, ids[i].bytes,
                     i % 2 ? "no duplicate although it was claimed before"
                           : "a duplicate although only its neighbours were claimed");
    /* giving one back must leave its neighbours alone */
    int r = wb_client_commit_releasing(a, WB_BATCH(2), NULL, 0, all, 1);
    wb_client_check(a, r, WB_OK, "commit and give one back");
    for (size_t i = 0; i < count; i++)
        wb_client_finds_owner(a, ids[i].bytes, ids[i].size,
                              i == 0 ? 0 : WB_BATCH(1) + (i % 2 == 0));
}

#define DIFFER(function, ...)                                                                      \
    static void function(wb_kit *kit)                                                              \
    {                                                                                              \
        static const text ids[] = { __VA_ARGS__ };                                                 \
        differ(kit, ids, sizeof ids / sizeof *ids);                                                \
    }

DIFFER(in_case, T("ORDER-1"), T("Order-1"), T("order-1"), T("\xc3\x84"), T("\xc3\xa4"))
DIFFER(in_blanks, T(" a"), T("a"), T("a\t"), T("a "), T("a  "))
DIFFER(in_nul_at_end, T("a"), T("a\0"), T("a\0\0"))
DIFFER(in_nul_inside, T("\0"), T("\0a"), T("a\0"), T("a\0a"), T("a\0b"))
/* A-ring as a letter, with a combining ring, and the sign for Angstrom; sharp s and ss */
DIFFER(in_accents, T("A\xcc\x8a"), T("ss"), T("\xc3\x85"), T("\xc3\x9f"), T("\xe2\x84\xab"))
DIFFER(in_length, T("a"), T("aa"), T("aaa"), T("aaaa"))
DIFFER(like_numbers, T("0x1"), T("1"), T("1.0"), T("1e0"), T("\xef\xbc\x91"))
DIFFER(like_code, T("$1"), T("%"), T("'"), T("'; rollback; --"), T("?"), T("\\"), T("\\'"), T("_"))
DIFFER(not_utf8, T("\x80"), T("\xc3"), T("\xed\xa0\x80"), T("\xff"), T("\xff\xfe"))

static void every_byte(wb_kit *kit)
{
    unsigned char bytes[256];
    wb_claim claims[256];
    size_t wrong = 0;
    wb_client *a = wb_client_open(kit, 0);
    for (size_t i = 0; i < 256; i++) {
        bytes[i] = (unsigned char)i;
        claims[i] = (wb_claim){ &bytes[i], 1, 0 };
    }
    if (!a || !wb_client_takes(a, WB_BATCH(1), claims, 256) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit") ||
        !wb_client_check(a, wb_client_begin(a, WB_BATCH(2), claims, 256), WB_OK, "begin"))
        return;
    for (size_t i = 0; i < 256; i++)
        wrong += claims[i].duplicate_of != WB_BATCH(1);
    wb_kit_check(kit, wrong == 0, "%zu of 256 ids of one byte are not found again", wrong);
    wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
}

/* The longest ids, of all byte values; three that differ in their last byte only. */
static void longest(wb_kit *kit)
{
    unsigned char bytes[4][255];
    text ids[4];
    for (size_t i = 0; i < 4; i++) {
        for (size_t at = 0; at < 255; at++)
            bytes[i][at] = (unsigned char)(at + 1);
        bytes[i][254] = (unsigned char)(i == 3 ? 0xff : i);
        ids[i] = (text){ (const char *)bytes[i], 255 };
    }
    differ(kit, ids, 4);
}

/* 256 ids of 255 bytes: each begins with another byte, and only one byte value is not in it. */
static void longest_of_every_byte(wb_kit *kit)
{
    enum { VALUES = 256, SIZE = 255 };
    static unsigned char bytes[VALUES][SIZE];
    wb_claim claims[VALUES];
    size_t wrong = 0;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t at = 0; at < SIZE; at++)
            bytes[i][at] = (unsigned char)(i + at);
        claims[i] = (wb_claim){ bytes[i], SIZE, 0 };
    }
    if (!a || !b || !wb_client_takes(a, WB_BATCH(1), claims, VALUES) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit") ||
        !wb_client_check(b, wb_client_begin(b, WB_BATCH(2), claims, VALUES), WB_OK, "begin"))
        return;
    for (size_t i = 0; i < VALUES; i++)
        wrong += claims[i].duplicate_of != WB_BATCH(1);
    wb_kit_check(kit, wrong == 0, "%zu of 256 ids of 255 bytes are not found again", wrong);
    wb_client_check(b, wb_client_rollback(b), WB_OK, "roll back");
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "ids that differ in case are two ids", OUTBOX, in_case },
    { "ids that differ in blanks at their ends are two ids", OUTBOX, in_blanks },
    { "ids that differ in NUL bytes at their end are two ids", OUTBOX, in_nul_at_end },
    { "ids that differ after a NUL byte are two ids", OUTBOX, in_nul_inside },
    { "ids that differ in accents or their normal form are two ids", OUTBOX, in_accents },
    { "an id that begins like another is another", OUTBOX, in_length },
    { "ids that are the same as numbers are two ids", OUTBOX, like_numbers },
    { "ids that look like SQL are ids", OUTBOX, like_code },
    { "ids need not be UTF-8", OUTBOX, not_utf8 },
    { "ids of one byte, every byte", OUTBOX, every_byte },
    { "ids of 255 bytes differ in their last one", OUTBOX, longest },
    { "ids of 255 bytes, of every byte value", OUTBOX, longest_of_every_byte },
};
const wb_kit_group wb_cases_ids = WB_KIT_GROUP(cases);

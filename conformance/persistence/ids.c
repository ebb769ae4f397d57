/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: ids are compared byte for byte. Each case is a list of ids that some
 * database takes for one.
 */
#include "config.h"

#include <string.h>

#include "conformance/persistence/persistence.h"

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

#define UUID "c0ffee00-1234-7abc-8def-0123456789ab"
#define UUID_BYTES "\xc0\xff\xee\x00\x12\x34\x7a\xbc\x8d\xef\x01\x23\x45\x67\x89\xab"
/* Whoever keeps UUIDs in fewer bytes must not take these for one. */
DIFFER(like_one_uuid, T("C0FFEE00-1234-7ABC-8DEF-0123456789AB"), T("c0FFEE00-1234-7ABC-8DEF-0123456789AB"),
       T("c0ffee00-1234-7abc-8def-0123456789AB"), T("c0ffee00-1234-7abc-8def-0123456789a"), T(UUID),
       T(UUID "\0"), T(UUID " "), T("c0ffee00-1234-7abc-8def0-123456789ab"), T("c0ffee00-1234-7abc8-def-0123456789ab"),
       T("c0ffee001234-7abc-8def-0123456789ab-"), T("c0ffee0012347abc8def0123456789ab"),
       T("c0ffee0g-1234-7abc-8def-0123456789ab"), T("urn:uuid:" UUID), T("{" UUID "}"), T(UUID_BYTES), T(UUID_BYTES "\0"))
/* Kept in fewer bytes, some have another place in the order of keys. */
DIFFER(uuids_among_others, T("!"), T("00000000-0000-4000-8000-000000000000"), T("10000000-0000-4000-8000-000000000000"),
       T("2"), T("90000000-0000-4000-8000-000000000000"), T("a"), T("a0000000-0000-4000-8000-000000000000"),
       T("f"), T("ffffffff-ffff-4fff-8fff-fffffffffffe"), T("ffffffff-ffff-4fff-8fff-ffffffffffff"), T("z"),
       T("\xff"), T("\xff\xff"))

/* A UUID, and what may stand for it in a table: a byte, whichever, and its 16 bytes. */
typedef struct {
    unsigned char bytes[256][17];
    wb_claim claims[256];
} stand_ins;

static void make_stand_ins(stand_ins *made, unsigned char last)
{
    for (size_t i = 0; i < 256; i++) {
        made->bytes[i][0] = (unsigned char)i;
        memcpy(made->bytes[i] + 1, UUID_BYTES, 16);
        made->bytes[i][16] = last;
        made->claims[i] = (wb_claim){ made->bytes[i], sizeof made->bytes[i], 0 };
    }
}

static size_t count_owned(const stand_ins *of, uint64_t batch)
{
    size_t count = 0;
    for (size_t i = 0; i < 256; i++)
        count += of->claims[i].duplicate_of == batch;
    return count;
}

static int take_stand_ins(wb_client *a, stand_ins *of, uint64_t batch)
{
    return wb_client_check(a, wb_client_begin(a, batch, of->claims, 256), WB_OK, "begin") &&
           wb_kit_check(a->kit, count_owned(of, 0) == 256, "%zu of 256 ids are duplicates of nothing",
                        256 - count_owned(of, 0)) &&
           wb_client_check(a, wb_client_commit(a, batch, NULL, 0), WB_OK, "commit");
}

static void like_kept_uuids(wb_kit *kit)
{
    static stand_ins first, second;
    static const char other[] = "c0ffee00-1234-7abc-8def-0123456789ac";
    wb_client *a = wb_client_open(kit, 0);
    make_stand_ins(&first, 0xab);
    make_stand_ins(&second, 0xac);
    if (!a || !wb_client_stores(a, WB_BATCH(1), UUID, NULL) || !take_stand_ins(a, &first, WB_BATCH(2)) ||
        !take_stand_ins(a, &second, WB_BATCH(3)) || !wb_client_stores(a, WB_BATCH(4), other, NULL))
        return;
    wb_client_finds_owner(a, UUID, sizeof UUID - 1, WB_BATCH(1));
    wb_client_finds_owner(a, other, sizeof other - 1, WB_BATCH(4));
    for (size_t i = 0; i < 2; i++) {
        stand_ins *of = i ? &second : &first;
        const wb_claim *back = of->claims + 128;
        wb_client_check(a, wb_client_begin(a, WB_BATCH(2 + i), of->claims, 256), WB_OK, "begin");
        wb_kit_check(kit, count_owned(of, WB_BATCH(2 + i)) == 256,
                     "%zu of 256 ids are not found again", 256 - count_owned(of, WB_BATCH(2 + i)));
        int r = wb_client_commit_releasing(a, WB_BATCH(2 + i), NULL, 0, back, 128);
        wb_client_check(a, r, WB_OK, "commit and give back half");
        wb_client_finds_owner(a, back[127].id, 17, 0);
        wb_client_finds_owner(a, of->claims[0].id, 17, WB_BATCH(2 + i));
    }
    wb_client_finds_owner(a, UUID, sizeof UUID - 1, WB_BATCH(1));
}

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
    { "ids that are one UUID, spelled in many ways, are many ids", OUTBOX, like_one_uuid },
    { "UUIDs among other ids are told apart", OUTBOX, uuids_among_others },
    { "ids that look like a UUID kept in 17 bytes are others", OUTBOX, like_kept_uuids },
    { "ids of one byte, every byte", OUTBOX, every_byte },
    { "ids of 255 bytes differ in their last one", OUTBOX, longest },
    { "ids of 255 bytes, of every byte value", OUTBOX, longest_of_every_byte },
};
const wb_kit_group wb_cases_ids = WB_KIT_GROUP(cases);

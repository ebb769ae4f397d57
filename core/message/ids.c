/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/ids.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sha256.h"

#define BATCH_RANDOM_BITS 22
#define BATCH_RANDOM_MAX ((1u << BATCH_RANDOM_BITS) - 1)
#define BATCH_STEP_MAX 1024u
#define BATCH_AHEAD_MAX (UINT64_C(100) << BATCH_RANDOM_BITS) /* 100 ms */
#define BATCH_EPOCH INT64_C(1577836800000) /* 2020-01-01, milliseconds since 1970 */

static void format_uuid(unsigned char bytes[16], unsigned version, char id[WB_GENERATED_ID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *to = id;
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | version << 4);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    *to = '\0';
}

/* Asked each time: bytes that are kept would come twice in a child of fork(), or after a snapshot. */
static void random_bytes(void *to, size_t size)
{
    if (getrandom(to, size, 0) != (ssize_t)size) {
        wb_log_write(WB_LOG_ERROR, "the kernel gives no random bytes", NULL, 0);
        abort();
    }
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* @return 1 if `id` is a version 7 UUID in the usual form, and its first 48 bits: its time. */
static int read_time_of_uuid(const char *id, size_t size, unsigned char ret_time[6])
{
    static const char form[] = "xxxxxxxx-xxxx-7xxx-yxxx-xxxxxxxxxxxx";
    size_t digits = 0;
    if (size != sizeof form - 1)
        return 0;
    for (size_t i = 0; i < size; i++) {
        int value = hex_value(id[i]);
        if (form[i] == 'x' || form[i] == 'y' ? value < 0 : id[i] != form[i])
            return 0;
        if (form[i] == 'y' && (value & 0xc) != 0x8)
            return 0;
        if (form[i] != '-' && digits < 12) {
            unsigned char *byte = &ret_time[digits++ / 2];
            *byte = (unsigned char)(*byte << 4 | value);
        }
    }
    return 1;
}

/* What all messages of one kind, type and destination have in common comes first and fills whole
 * blocks of the hash. The state after it is kept, so a message costs one block more. */
#define BLOCK 64
#define SCOPE_MAX 1024
/* A handler sends few kinds of messages. */
#define SCOPES_KEPT 4

typedef struct {
    size_t size; /* 0: free */
    unsigned char bytes[SCOPE_MAX];
    wb_sha256 hash;
} scope;

static size_t size_of_scope(const wb_id_seed *seed)
{
    size_t size = 2 + strlen(seed->endpoint) + 1 + strlen(seed->type) + 1;
    size += seed->destination ? strlen(seed->destination) + 1 : 0;
    return (size + BLOCK - 1) / BLOCK * BLOCK;
}

static void write_scope(const wb_id_seed *seed, unsigned char *bytes, size_t size)
{
    const char *texts[] = { seed->endpoint, seed->type, seed->destination };
    size_t at = 2;
    memset(bytes, 0, size);
    bytes[0] = (unsigned char)seed->kind;
    bytes[1] = (unsigned char)seed->immediate;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && texts[i]; i++) {
        memcpy(bytes + at, texts[i], strlen(texts[i]));
        at += strlen(texts[i]) + 1;
    }
}

static void hash_scope(const wb_id_seed *seed, wb_sha256 *hash)
{
    static _Thread_local scope kept[SCOPES_KEPT];
    static _Thread_local size_t next;
    size_t size = size_of_scope(seed);
    unsigned char bytes[size];

    write_scope(seed, bytes, size);
    for (size_t i = 0; i < SCOPES_KEPT; i++)
        if (kept[i].size == size && memcmp(kept[i].bytes, bytes, size) == 0) {
            *hash = kept[i].hash;
            return;
        }
    wb_sha256_init(hash);
    wb_sha256_update(hash, bytes, size);
    if (size > SCOPE_MAX)
        return;
    scope *place = &kept[next++ % SCOPES_KEPT];
    place->size = size;
    memcpy(place->bytes, bytes, size);
    place->hash = *hash;
}

static void hash_seed(const wb_id_seed *seed, unsigned char digest[WB_SHA256_SIZE])
{
    const unsigned char ordinal[4] = { (unsigned char)seed->ordinal, (unsigned char)(seed->ordinal >> 8),
                                       (unsigned char)(seed->ordinal >> 16),
                                       (unsigned char)(seed->ordinal >> 24) };
    wb_sha256 hash;
    hash_scope(seed, &hash);
    wb_sha256_update(&hash, ordinal, sizeof ordinal);
    wb_sha256_update(&hash, seed->cause, seed->cause_size);
    wb_sha256_final(&hash, digest);
}

void wb_id_derive(const wb_id_seed *seed, char id[WB_GENERATED_ID_SIZE])
{
    unsigned char digest[WB_SHA256_SIZE], time[6] = { 0 };
    int ordered = read_time_of_uuid(seed->cause, seed->cause_size, time);
    hash_seed(seed, digest);
    if (ordered)
        memcpy(digest, time, sizeof time);
    format_uuid(digest, ordered ? 7 : 8, id);
}

void wb_id_of_hash(const unsigned char *digest, char id[WB_GENERATED_ID_SIZE])
{
    unsigned char bytes[16];
    memcpy(bytes, digest, sizeof bytes);
    format_uuid(bytes, 8, id);
}

void wb_id_generate(char id[WB_GENERATED_ID_SIZE])
{
    unsigned char bytes[16];
    uint64_t milliseconds = (uint64_t)(wb_clock_wall() / WB_MILLISECOND);
    random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < 6; i++)
        bytes[i] = (unsigned char)(milliseconds >> (40 - 8 * i));
    format_uuid(bytes, 7, id);
}

uint64_t wb_batch_number_at(int64_t wall)
{
    int64_t age = wall / WB_MILLISECOND - BATCH_EPOCH;
    return (uint64_t)(age > 0 ? age : 0) << BATCH_RANDOM_BITS;
}

int64_t wb_batch_number_time(uint64_t number)
{
    return ((int64_t)(number >> BATCH_RANDOM_BITS) + BATCH_EPOCH) * WB_MILLISECOND;
}

/* In the millisecond of the one before, or a little before it (threads are late), the next is above it: not by one, for a child
 * of fork() goes on from the same. Else it is drawn. */
static uint64_t number_after(uint64_t before, uint64_t start, uint32_t random)
{
    const int goes_on = before > start && before - start < BATCH_AHEAD_MAX;
    const uint64_t number = goes_on ? before + 1 + random % BATCH_STEP_MAX : start + 1 + random % BATCH_RANDOM_MAX;
    return wb_batch_number_is_closed(number) ? number + 1 : number;
}

uint64_t wb_batch_number_drawn(int64_t wall)
{
    uint32_t random;
    random_bytes(&random, sizeof random);
    return wb_batch_number_at(wall) | (1 + random % BATCH_RANDOM_MAX);
}

uint64_t wb_batch_number(int64_t wall)
{
    static _Atomic uint64_t last;
    const uint64_t start = wb_batch_number_at(wall);
    uint64_t before = atomic_load(&last), number;
    uint32_t random;
    random_bytes(&random, sizeof random);
    do
        number = number_after(before, start, random);
    while (!atomic_compare_exchange_weak(&last, &before, number));
    return number;
}

uint64_t wb_batch_number_closed(int64_t wall, uint64_t after)
{
    const uint64_t number = wb_batch_number_at(wall), next = (after | BATCH_RANDOM_MAX) + 1;
    return number > after ? number : next;
}

int wb_batch_number_is_closed(uint64_t number)
{
    return (number & BATCH_RANDOM_MAX) == 0;
}

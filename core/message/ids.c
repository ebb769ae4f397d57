/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/ids.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/sha256.h"

#define BATCH_RANDOM_BITS 22
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

static void hash_seed(const wb_id_seed *seed, unsigned char digest[WB_SHA256_SIZE])
{
    const char *destination = seed->destination ? seed->destination : "";
    unsigned char fixed[6] = { (unsigned char)seed->kind,           (unsigned char)seed->immediate,
                               (unsigned char)seed->ordinal,        (unsigned char)(seed->ordinal >> 8),
                               (unsigned char)(seed->ordinal >> 16), (unsigned char)(seed->ordinal >> 24) };
    wb_sha256 hash;
    wb_sha256_init(&hash);
    wb_sha256_update(&hash, seed->endpoint, strlen(seed->endpoint) + 1);
    wb_sha256_update(&hash, fixed, sizeof fixed);
    wb_sha256_update(&hash, seed->type, strlen(seed->type) + 1);
    wb_sha256_update(&hash, destination, strlen(destination) + 1);
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

uint64_t wb_batch_number(int64_t wall)
{
    uint32_t random;
    random_bytes(&random, sizeof random);
    return wb_batch_number_at(wall) | (random & ((1u << BATCH_RANDOM_BITS) - 1));
}

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

void wb_id_derive(const char *endpoint, const void *cause, size_t cause_size, uint32_t ordinal,
                  char id[WB_GENERATED_ID_SIZE])
{
    unsigned char digest[WB_SHA256_SIZE];
    unsigned char count[4] = { (unsigned char)ordinal, (unsigned char)(ordinal >> 8),
                               (unsigned char)(ordinal >> 16), (unsigned char)(ordinal >> 24) };
    wb_sha256 hash;
    wb_sha256_init(&hash);
    wb_sha256_update(&hash, endpoint, strlen(endpoint) + 1);
    wb_sha256_update(&hash, count, sizeof count);
    wb_sha256_update(&hash, cause, cause_size);
    wb_sha256_final(&hash, digest);
    format_uuid(digest, 8, id);
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

uint64_t wb_batch_number(void)
{
    uint32_t random;
    random_bytes(&random, sizeof random);
    return wb_batch_number_at(wb_clock_wall()) | (random & ((1u << BATCH_RANDOM_BITS) - 1));
}

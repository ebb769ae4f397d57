/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4), for ids derived from ids; nothing is kept secret with it. Small
 * enough to have here: the alternative is a dependency of the core on a TLS library.
 */
#ifndef WB_BASE_SHA256_H
#define WB_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define WB_SHA256_SIZE 32

typedef struct wb_sha256 {
    uint32_t state[8];
    uint64_t total;
    unsigned char block[64];
    size_t used;
} wb_sha256;

void wb_sha256_init(wb_sha256 *hash);
void wb_sha256_update(wb_sha256 *hash, const void *data, size_t size);
void wb_sha256_final(wb_sha256 *hash, unsigned char digest[WB_SHA256_SIZE]);

#endif

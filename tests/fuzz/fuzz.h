/* SPDX-License-Identifier: Apache-2.0
 *
 * What all fuzz targets share. A target is one file that has fuzz_one(). Under --enable-fuzzers it
 * is linked with libFuzzer, else with replay.c, which runs it on its corpus and on damaged copies
 * of that.
 */
#ifndef WB_TESTS_FUZZ_FUZZ_H
#define WB_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <waybill/message.h>

/** The target: one input, of any bytes. Nothing may crash, leak, or read beyond an end, and what
 *  FUZZ_CHECK() says must hold. Nothing is remembered from one input to the next. */
void fuzz_one(const void *data, size_t size);

/** The name of the target, as its corpus is called. */
extern const char fuzz_name[];

/** End the process unless the condition holds. */
#define FUZZ_CHECK(condition)                                                                      \
    ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* ---- an input as a sequence of values ---------------------------------------------------- */

/** What is left of an input. Beyond its end all numbers are 0 and all texts empty. */
typedef struct fuzz_input {
    const unsigned char *at;
    const unsigned char *end;
} fuzz_input;

fuzz_input fuzz_begin(const void *data, size_t size);
unsigned fuzz_byte(fuzz_input *input);
/** Four bytes, little-endian. */
uint32_t fuzz_number(fuzz_input *input);
/** Eight of them. */
uint64_t fuzz_large(fuzz_input *input);
/** A size of two bytes, little-endian, and so many bytes, or what is left. */
char *fuzz_text(fuzz_input *input, size_t *ret_size);
/** All that is left. */
char *fuzz_rest(fuzz_input *input, size_t *ret_size);
/** A number, of one byte, of pairs of texts, at most `max`. @return how many there are. */
size_t fuzz_headers(fuzz_input *input, wb_header *headers, size_t max);

/* ---- memory ------------------------------------------------------------------------------ */

/** A copy in memory of its own with a NUL byte behind it, so that reading further is noticed.
 *  Freed when fuzz_one() has returned. */
char *fuzz_copy(const void *data, size_t size);
/** Zeroed memory of the same kind. */
void *fuzz_alloc(size_t size);

/** Two runs of bytes. */
int fuzz_is_same(const void *one, size_t one_size, const void *other, size_t other_size);

/** The shared entry, libFuzzer's: calls fuzz_one(). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

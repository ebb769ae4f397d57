/* SPDX-License-Identifier: Apache-2.0
 *
 * The blob in which the sqlite transport keeps headers, whole and within limits, whatever somebody
 * wrote into the file.
 */
#include "config.h"

#include <string.h>

#include "plugins/transport/sqlite/codec.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "sqlite_headers";

#define HEADERS_MAX 40

static int is_same_header(const wb_header *a, const wb_header *b)
{
    return fuzz_is_same(a->name, a->name_size, b->name, b->name_size) &&
           fuzz_is_same(a->value, a->value_size, b->value, b->value_size);
}

/* As a receiver reads it. @return -1: it is damaged. */
static int read_blob(const void *blob, size_t total, wb_sqlite_codec_limits limits, wb_header **ret_headers,
                     size_t *ret_count)
{
    const size_t within = wb_sqlite_codec_bytes_within(&limits), size = total < within ? total : within;
    const char *part = fuzz_copy(blob, size); /* a receiver reads no more than that */
    const wb_sqlite_codec_summary summary = wb_sqlite_codec_summarize(part, size, total, &limits);
    *ret_count = 0;
    if (summary.is_damaged)
        return -1;
    FUZZ_CHECK(summary.kept <= summary.count && (!limits.count || summary.kept <= limits.count));
    *ret_headers = fuzz_alloc(summary.kept * sizeof **ret_headers);
    const int result = wb_sqlite_codec_decode(part, size, &summary, &limits, *ret_headers, ret_count);
    FUZZ_CHECK(*ret_count <= summary.kept);
    return result;
}

static void check_texts(const wb_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(headers[i].name[headers[i].name_size] == '\0' && headers[i].value[headers[i].value_size] == '\0');
}

/* Those that come within limits are the first of all. */
static void check_limits(const void *blob, size_t size, wb_sqlite_codec_limits limits, const wb_header *all, size_t count)
{
    wb_header *some = NULL;
    size_t kept = 0, bytes = 0;
    FUZZ_CHECK(read_blob(blob, size, limits, &some, &kept) == 0 && kept <= count);
    for (size_t i = 0; i < kept; i++) {
        FUZZ_CHECK(is_same_header(&some[i], &all[i]));
        bytes += some[i].name_size + some[i].value_size;
    }
    FUZZ_CHECK((!limits.count || kept <= limits.count) && (!limits.bytes || bytes <= limits.bytes));
    check_texts(some, kept);
}

static void check_again(const wb_header *headers, size_t count, wb_sqlite_codec_limits limits)
{
    const wb_sqlite_codec_limits none = { 0, 0 };
    wb_sqlite_codec_buffer buffer = { 0 };
    wb_header *again = NULL;
    size_t again_count = 0;
    FUZZ_CHECK(wb_sqlite_codec_encode(&buffer, headers, count) == 0);
    FUZZ_CHECK(read_blob(buffer.data, buffer.size, none, &again, &again_count) == 0 && again_count == count);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(is_same_header(&headers[i], &again[i]));
    check_limits(buffer.data, buffer.size, limits, headers, count);
    wb_sqlite_codec_free(&buffer);
}

void fuzz_one(const void *data, size_t size)
{
    const wb_sqlite_codec_limits none = { 0, 0 };
    fuzz_input input = fuzz_begin(data, size);
    const wb_sqlite_codec_limits limits = { fuzz_byte(&input), fuzz_byte(&input) };
    wb_header *headers = NULL, *own = fuzz_alloc(HEADERS_MAX * sizeof *own), *some = NULL;
    size_t count = 0, ignored;
    if (read_blob(input.at, (size_t)(input.end - input.at), none, &headers, &count) == 0) {
        check_texts(headers, count);
        check_again(headers, count, limits);
    }
    if (read_blob(input.at, (size_t)(input.end - input.at), limits, &some, &ignored) == 0)
        check_texts(some, ignored);
    check_again(own, fuzz_headers(&input, own, HEADERS_MAX), limits);
}

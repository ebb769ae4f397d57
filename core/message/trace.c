/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/trace.h"

#include <string.h>

#include "core/base/sha256.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"

/* Where the fields of a traceparent are. */
#define AT_TRACE 3
#define AT_SPAN 36
#define AT_FLAGS 53
#define LENGTH (WB_TRACE_PARENT_SIZE - 1)

#define TEXT(literal) { (literal), sizeof(literal) - 1 }

static const wb_text nobody = TEXT("");

/* ---- traceparent ------------------------------------------------------------------ */

/* Capital letters are none, says the standard. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_bytes(const char *text, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    return 1;
}

static void write_bytes(char *text, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
}

static int is_zero(const unsigned char *bytes, size_t count)
{
    unsigned char all = 0;
    for (size_t i = 0; i < count; i++)
        all |= bytes[i];
    return !all;
}

/* Version 00 is as long as it is; a later one may say more behind a dash. */
static int has_shape(const char *value, size_t size, unsigned char version)
{
    return value[AT_TRACE - 1] == '-' && value[AT_SPAN - 1] == '-' && value[AT_FLAGS - 1] == '-' && version != 0xff &&
           (size == LENGTH || (version && value[LENGTH] == '-'));
}

int wb_trace_read(const char *value, size_t size, wb_trace *ret_trace)
{
    unsigned char version, flags;
    memset(ret_trace, 0, sizeof *ret_trace);
    if (size >= LENGTH && read_bytes(value, &version, 1) && has_shape(value, size, version) &&
        read_bytes(value + AT_TRACE, ret_trace->trace_id, WB_TRACE_ID_SIZE) &&
        read_bytes(value + AT_SPAN, ret_trace->span_id, WB_SPAN_ID_SIZE) && read_bytes(value + AT_FLAGS, &flags, 1) &&
        !is_zero(ret_trace->trace_id, WB_TRACE_ID_SIZE) && !is_zero(ret_trace->span_id, WB_SPAN_ID_SIZE)) {
        ret_trace->flags = flags & WB_TRACE_SAMPLED;
        return 1;
    }
    memset(ret_trace, 0, sizeof *ret_trace);
    return 0;
}

void wb_trace_write(const wb_trace *trace, char text[WB_TRACE_PARENT_SIZE])
{
    const unsigned char version = 0, flags = (unsigned char)(trace->flags & WB_TRACE_SAMPLED);
    memset(text, '-', LENGTH);
    write_bytes(text, &version, 1);
    write_bytes(text + AT_TRACE, trace->trace_id, WB_TRACE_ID_SIZE);
    write_bytes(text + AT_SPAN, trace->span_id, WB_SPAN_ID_SIZE);
    write_bytes(text + AT_FLAGS, &flags, 1);
    text[LENGTH] = '\0';
}

int wb_trace_is_set(const wb_trace *trace)
{
    return !is_zero(trace->trace_id, WB_TRACE_ID_SIZE);
}

/* ---- ids that follow from ids ------------------------------------------------------- */

/* With its size before it, in the same bytes on every machine. */
static void hash_text(wb_sha256 *hash, const wb_text *text)
{
    unsigned char size[4];
    for (size_t i = 0; i < sizeof size; i++)
        size[i] = (unsigned char)(text->size >> (8 * i));
    wb_sha256_update(hash, size, sizeof size);
    wb_sha256_update(hash, text->value, text->size);
}

static void derive(const wb_text *parts, size_t part_count, unsigned char *bytes, size_t count)
{
    unsigned char digest[WB_SHA256_SIZE];
    wb_sha256 hash;
    wb_sha256_init(&hash);
    for (size_t i = 0; i < part_count; i++)
        hash_text(&hash, &parts[i]);
    wb_sha256_final(&hash, digest);
    memcpy(bytes, digest, count);
}

static void derive_handling(const wb_text *endpoint, const char *id, size_t id_size, unsigned char span[WB_SPAN_ID_SIZE])
{
    const wb_text parts[] = { TEXT("handling"), *endpoint, { id_size ? id : "", id_size } };
    derive(parts, 3, span, WB_SPAN_ID_SIZE);
}

/* `cause` is empty where none is told of. */
static void derive_sending(const wb_text *endpoint, const wb_operation *operation, const wb_text *cause,
                           unsigned char span[WB_SPAN_ID_SIZE])
{
    const wb_text parts[] = { TEXT("sending"), *endpoint, { operation->id, operation->id_size },
                              { operation->destination, strlen(operation->destination) }, *cause };
    derive(parts, 5, span, WB_SPAN_ID_SIZE);
}

static void begin(const wb_tracing *tracing, const wb_text *endpoint, const char *id, size_t id_size, wb_trace *trace)
{
    const wb_text parts[] = { TEXT("trace"), *endpoint, { id, id_size } };
    derive(parts, 3, trace->trace_id, WB_TRACE_ID_SIZE);
    if (!WB_HAS(tracing->ops, wb_observer_ops, samples) || tracing->ops->samples(tracing->observer, trace->trace_id))
        trace->flags = WB_TRACE_SAMPLED;
}

/* Of several headers of that name the first counts, as everywhere. */
static int find(const wb_header *headers, size_t count, wb_trace *ret_trace)
{
    const wb_header *header = WB_HEADERS_FIND(headers, count, WB_HEADER_TRACE_PARENT);
    memset(ret_trace, 0, sizeof *ret_trace);
    return header && wb_trace_read(header->value, header->value_size, ret_trace);
}

int wb_trace_handle(const wb_tracing *tracing, const wb_text *endpoint, const wb_header *headers, size_t count,
                    const char *id, size_t id_size, wb_trace *ret_trace)
{
    const int is_named = find(headers, count, ret_trace);
    memcpy(ret_trace->parent_id, ret_trace->span_id, WB_SPAN_ID_SIZE);
    if (!is_named && !id_size)
        return 0;
    if (!is_named)
        begin(tracing, endpoint, id, id_size, ret_trace);
    derive_handling(endpoint, id, id_size, ret_trace->span_id);
    return is_named;
}

void wb_trace_fail(wb_trace *handling)
{
    char id[WB_GENERATED_ID_SIZE];
    if (!wb_trace_is_set(handling))
        return;
    wb_id_generate(id);
    derive_handling(&nobody, id, sizeof id - 1, handling->span_id);
}

int wb_trace_send(const wb_tracing *tracing, const wb_text *endpoint, const wb_operation *operation,
                  const wb_message *cause, int is_related, wb_trace *ret_trace)
{
    const wb_text related = is_related ? (wb_text){ cause->id, cause->id_size } : nobody;
    int is_named = 0;
    memset(ret_trace, 0, sizeof *ret_trace);
    if (cause)
        is_named = wb_trace_handle(tracing, endpoint, cause->headers, cause->header_count, cause->id, cause->id_size, ret_trace);
    if (related.size)
        memcpy(ret_trace->parent_id, ret_trace->span_id, WB_SPAN_ID_SIZE);
    else
        memset(ret_trace->parent_id, 0, WB_SPAN_ID_SIZE);
    if (!wb_trace_is_set(ret_trace))
        begin(tracing, endpoint, operation->id, operation->id_size, ret_trace);
    derive_sending(endpoint, operation, &related, ret_trace->span_id);
    return is_named;
}

static int is_its_sending(const wb_text *endpoint, const wb_operation *operation, const wb_text *cause, const wb_trace *trace)
{
    unsigned char span[WB_SPAN_ID_SIZE];
    derive_sending(endpoint, operation, cause, span);
    return memcmp(span, trace->span_id, WB_SPAN_ID_SIZE) == 0;
}

int wb_trace_sent(const wb_text *endpoint, const wb_operation *operation, wb_trace *ret_trace)
{
    const wb_header *header = WB_HEADERS_FIND(operation->headers, operation->header_count, WB_HEADER_RELATED_TO);
    const wb_text related = header ? (wb_text){ header->value, header->value_size } : nobody;
    if (!find(operation->headers, operation->header_count, ret_trace) || !operation->id_size)
        return 0;
    if (!related.size || !is_its_sending(endpoint, operation, &related, ret_trace))
        return is_its_sending(endpoint, operation, &nobody, ret_trace);
    derive_handling(endpoint, related.value, related.size, ret_trace->parent_id);
    return 1;
}

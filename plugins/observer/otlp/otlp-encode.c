/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/observer/otlp/otlp-encode.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sys/transport.h>

/* opentelemetry.proto.trace.v1: Span.SpanKind, Status.StatusCode */
#define SPAN_KIND_PRODUCER 4
#define SPAN_KIND_CONSUMER 5
#define STATUS_CODE_ERROR 2

#define NAME_SIZE 512

/* ---- values ------------------------------------------------------------------------ */

/* How many bytes of a character of UTF-8 are there; 0: it is none. */
static size_t character(const char *value, size_t size)
{
    for (size_t count = 1; count <= 4 && count <= size; count++) {
        json_t *made = json_stringn(value, count);
        json_decref(made);
        if (made)
            return count;
    }
    return 0;
}

/* One that is no UTF-8 would have the whole request refused. */
static json_t *text(const char *value)
{
    json_t *made = json_string(value);
    const size_t size = strlen(value);
    char *plain = made ? NULL : malloc(size + 1);
    if (!plain)
        return made;
    for (size_t i = 0; i < size;) {
        const size_t count = character(value + i, size - i);
        memcpy(plain + i, count ? value + i : "?", count ? count : 1);
        i += count ? count : 1;
    }
    made = json_stringn(plain, size);
    free(plain);
    return made;
}

/* 64 bits are texts in this encoding. */
static json_t *number(int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, value);
    return json_string(digits);
}

static json_t *hex(const unsigned char *bytes, size_t count)
{
    char digits[2 * WB_TRACE_ID_SIZE + 1];
    for (size_t i = 0; i < count; i++)
        (void)snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    return json_string(digits);
}

/* Absent where there is none. */
static void add_text(json_t *attributes, const char *key, const char *value)
{
    if (value)
        (void)json_array_append_new(attributes, json_pack("{s:s, s:{s:o}}", "key", key, "value", "stringValue", text(value)));
}

static void add_number(json_t *attributes, const char *key, int64_t value)
{
    (void)json_array_append_new(attributes, json_pack("{s:s, s:{s:o}}", "key", key, "value", "intValue", number(value)));
}

/* ---- a span ------------------------------------------------------------------------ */

static int is_zero(const unsigned char *bytes, size_t count)
{
    while (count && !bytes[count - 1])
        count--;
    return count == 0;
}

static const char *operation_of(const wb_otlp_span *span)
{
    return span->is == WB_OTLP_SENT ? "send" : "process";
}

static const char *destination_of(const wb_otlp_resource *resource, const wb_otlp_span *span)
{
    return span->is == WB_OTLP_SENT ? span->destination : resource->endpoint;
}

static json_t *attributes_of(const wb_otlp_resource *resource, const wb_otlp_span *span)
{
    json_t *attributes = json_array();
    add_text(attributes, "messaging.system", "waybill");
    add_text(attributes, "messaging.operation.type", operation_of(span));
    add_text(attributes, "messaging.operation.name",
             span->is == WB_OTLP_SENT && span->kind == WB_OPERATION_PUBLISH ? "publish" : operation_of(span));
    add_text(attributes, "messaging.destination.name", destination_of(resource, span));
    add_text(attributes, "messaging.message.id", span->id);
    add_number(attributes, "messaging.message.body.size", (int64_t)span->body_size);
    add_text(attributes, "waybill.message.type", span->type);
    if (span->attempt)
        add_number(attributes, "waybill.attempt", span->attempt);
    if (span->is == WB_OTLP_FAILED)
        add_text(attributes, "error.type", "handling_failed");
    return attributes;
}

static json_t *name_of(const wb_otlp_resource *resource, const wb_otlp_span *span)
{
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof name, "%s %s", operation_of(span), destination_of(resource, span));
    return text(name);
}

static json_t *encode_span(const wb_otlp_resource *resource, const wb_otlp_span *span)
{
    json_t *object = json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "traceId", hex(span->trace.trace_id, WB_TRACE_ID_SIZE),
                               "spanId", hex(span->trace.span_id, WB_SPAN_ID_SIZE), "name", name_of(resource, span), "kind",
                               span->is == WB_OTLP_SENT ? SPAN_KIND_PRODUCER : SPAN_KIND_CONSUMER, "startTimeUnixNano",
                               number(span->begin), "endTimeUnixNano", number(span->end), "attributes",
                               attributes_of(resource, span));
    if (!is_zero(span->trace.parent_id, WB_SPAN_ID_SIZE))
        (void)json_object_set_new(object, "parentSpanId", hex(span->trace.parent_id, WB_SPAN_ID_SIZE));
    if (span->is == WB_OTLP_FAILED)
        (void)json_object_set_new(object, "status", json_pack("{s:i, s:o}", "code", STATUS_CODE_ERROR, "message",
                                                              text(span->reason ? span->reason : "")));
    return object;
}

/* ---- a request --------------------------------------------------------------------- */

static json_t *encode_resource(const wb_otlp_resource *resource)
{
    json_t *attributes = json_array();
    add_text(attributes, "service.name", resource->service_name);
    add_text(attributes, "host.name", resource->host_name);
    add_text(attributes, "waybill.endpoint", resource->endpoint);
    return json_pack("{s:o}", "attributes", attributes);
}

char *wb_otlp_encode(const wb_otlp_resource *resource, const wb_otlp_chain *chain)
{
    json_t *spans = json_array();
    for (const wb_otlp_span *span = chain->first; span; span = span->next)
        if (json_array_append_new(spans, encode_span(resource, span)) != 0) {
            json_decref(spans);
            return NULL;
        }
    json_t *request = json_pack("{s:[{s:o, s:[{s:{s:s, s:s}, s:o}]}]}", "resourceSpans", "resource",
                                encode_resource(resource), "scopeSpans", "scope", "name", "waybill", "version",
                                PACKAGE_VERSION, "spans", spans);
    char *made = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    return made;
}

uint64_t wb_otlp_rejected(const char *answer, size_t size, char *reason, size_t reason_size)
{
    json_t *object = json_loadb(answer, size, 0, NULL);
    const json_t *partial = json_object_get(object, "partialSuccess");
    const json_t *count = json_object_get(partial, "rejectedSpans");
    const char *why = json_string_value(json_object_get(partial, "errorMessage"));
    /* a text, as the encoding has it, or a number, as many write it */
    const long long rejected = json_is_string(count) ? strtoll(json_string_value(count), NULL, 10) : json_integer_value(count);
    (void)snprintf(reason, reason_size, "%s", why ? why : "");
    json_decref(object);
    return rejected > 0 ? (uint64_t)rejected : 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of peers in spans, and what a receiver answers: whatever they are, a request is JSON with as many spans as there were.
 */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/observer/otlp/otlp-encode.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "otlp";

static void try_answer(fuzz_input *input)
{
    char reason[32];
    size_t size;
    const char *text = fuzz_text(input, &size);
    (void)wb_otlp_rejected(text, size, reason, sizeof reason);
    FUZZ_CHECK(strlen(reason) < sizeof reason);
}

static wb_observation read_observation(fuzz_input *input)
{
    size_t ignored;
    wb_observation one = { .struct_size = sizeof one, .trace = { .flags = WB_TRACE_SAMPLED } };
    const unsigned there = fuzz_byte(input);
    one.id = fuzz_text(input, &one.id_size);
    one.type = there & 1 ? fuzz_text(input, &ignored) : NULL;
    one.destination = there & 2 ? fuzz_text(input, &ignored) : NULL;
    one.reason = there & 4 ? fuzz_text(input, &ignored) : NULL;
    one.kind = (int32_t)(there & 3);
    one.begin = (int64_t)fuzz_large(input);
    one.end = (int64_t)fuzz_large(input);
    one.trace.trace_id[0] = one.trace.span_id[0] = one.trace.parent_id[7] = (unsigned char)fuzz_byte(input);
    return one;
}

static void check_request(const char *body, size_t count)
{
    json_t *request = json_loads(body, 0, NULL);
    FUZZ_CHECK(request != NULL);
    const json_t *resource = json_array_get(json_object_get(request, "resourceSpans"), 0);
    const json_t *scope = json_array_get(json_object_get(resource, "scopeSpans"), 0);
    FUZZ_CHECK(json_array_size(json_object_get(scope, "spans")) == count);
    json_decref(request);
}

void fuzz_one(const void *data, size_t size)
{
    static const wb_otlp_resource resource = { "orders", "orders", "host" };
    fuzz_input input = fuzz_begin(data, size);
    wb_otlp_queue queue;
    wb_otlp_chain chain;
    FUZZ_CHECK(wb_otlp_queue_init(&queue, 4, 4) == 0);
    try_answer(&input);
    const size_t count = fuzz_byte(&input) % 6;
    for (size_t i = 0; i < count; i++) {
        const wb_observation one = read_observation(&input), *pointer = &one;
        /* one that was sent has a destination: the host says so */
        wb_otlp_queue_add(&queue, one.destination ? WB_OTLP_SENT : WB_OTLP_HANDLED + (int)(i % 2), &pointer, 1);
    }
    FUZZ_CHECK(wb_otlp_queue_dropped(&queue) == (count > 4 ? count - 4 : 0));
    wb_otlp_queue_take(&queue, 0, &chain);
    FUZZ_CHECK(chain.count == (count < 4 ? count : 4));
    char *body = wb_otlp_encode(&resource, &chain);
    FUZZ_CHECK(body != NULL);
    check_request(body, chain.count);
    free(body);
    wb_otlp_chain_free(&chain);
    wb_otlp_queue_free(&queue);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer's traceparent, and what goes on from it. What is read and written again is the same, but for flags that nobody knows;
 * what an endpoint makes of it is one that it reads itself.
 */
#include "config.h"

#include <string.h>

#include "core/message/header_names.h"
#include "core/message/trace.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "traces";

static void try_parent(const char *text, size_t size)
{
    char again[WB_TRACE_PARENT_SIZE];
    wb_trace trace, same;
    if (!wb_trace_read(text, size, &trace)) {
        FUZZ_CHECK(!wb_trace_is_set(&trace));
        return;
    }
    wb_trace_write(&trace, again);
    FUZZ_CHECK(memcmp(text + 2, again + 2, 51) == 0);
    FUZZ_CHECK(strlen(again) == WB_TRACE_PARENT_SIZE - 1 && wb_trace_read(again, WB_TRACE_PARENT_SIZE - 1, &same));
    FUZZ_CHECK(memcmp(&trace, &same, sizeof same) == 0);
}

static void try_message(fuzz_input *input)
{
    static const wb_observer_ops ops = { .struct_size = sizeof ops };
    static const wb_tracing tracing = { &ops, NULL };
    static const wb_text endpoint = { "orders", 6 };
    wb_header headers[8], own[2];
    char text[WB_TRACE_PARENT_SIZE];
    wb_trace handling, sending, sent;
    wb_message cause = { .struct_size = sizeof cause, .headers = headers };
    cause.id = fuzz_text(input, &cause.id_size);
    cause.header_count = fuzz_headers(input, headers, 8);
    wb_operation operation = { .struct_size = sizeof operation, .id = "out", .id_size = 3, .destination = "q",
                               .headers = own, .header_count = cause.id_size ? 2 : 1 };
    (void)wb_trace_handle(&tracing, &endpoint, headers, cause.header_count, cause.id, cause.id_size, &handling);
    (void)wb_trace_send(&tracing, &endpoint, &operation, &cause, 1, &sending);
    FUZZ_CHECK(wb_trace_is_set(&sending));
    FUZZ_CHECK(!wb_trace_is_set(&handling) || !cause.id_size || memcmp(sending.parent_id, handling.span_id, WB_SPAN_ID_SIZE) == 0);
    wb_trace_write(&sending, text);
    own[0] = (wb_header){ WB_HEADER_TRACE_PARENT, text, sizeof WB_HEADER_TRACE_PARENT - 1, sizeof text - 1 };
    own[1] = (wb_header){ WB_HEADER_RELATED_TO, cause.id, sizeof WB_HEADER_RELATED_TO - 1, cause.id_size };
    FUZZ_CHECK(wb_trace_sent(&endpoint, &operation, &sent));
    FUZZ_CHECK(memcmp(sent.trace_id, sending.trace_id, WB_TRACE_ID_SIZE) == 0 && sent.flags == sending.flags);
}

void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    try_parent(fuzz_copy(data, size), size);
    try_message(&input);
}

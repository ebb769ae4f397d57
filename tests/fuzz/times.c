/* SPDX-License-Identifier: Apache-2.0
 *
 * Times, spans and sizes as people and peers write them. What is read and written again is the
 * same; what is no time is refused, however near it is.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <waybill/sys/expiry.h>

#include "core/base/clock.h"
#include "core/config/units.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "times";

static void try_units(const char *text)
{
    char again[WB_UNIT_TEXT_SIZE];
    int64_t value = -1, same = -1;
    if (wb_duration_parse(text, &value) == WB_UNIT_OK)
        FUZZ_CHECK(value >= 0 && wb_duration_parse(wb_duration_format(value, again), &same) == WB_UNIT_OK &&
                   same == value);
    if (wb_size_parse(text, &value) == WB_UNIT_OK)
        FUZZ_CHECK(value >= 0 && wb_size_parse(wb_size_format(value, again), &same) == WB_UNIT_OK &&
                   same == value);
}

/* By the C library, which is asked the other way round. */
static void try_time(const char *text)
{
    char again[40];
    struct tm tm;
    int64_t time = -1;
    if (wb_time_parse(text, &time) != WB_UNIT_OK)
        return;
    FUZZ_CHECK(time >= 0);
    const time_t seconds = (time_t)(time / WB_SECOND);
    FUZZ_CHECK(gmtime_r(&seconds, &tm) != NULL);
    FUZZ_CHECK(strftime(again, sizeof again, text[10] == 'T' ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm) == 19);
    FUZZ_CHECK(strncmp(text, again, 19) == 0);
}

static void try_wire(const char *text)
{
    char again[WB_TIMESTAMP_SIZE];
    int64_t time = 0;
    if (!wb_clock_parse_wire(text, &time))
        return;
    const wb_header sent = { "NServiceBus.TimeSent", text, 20, strlen(text) };
    if (time > 0 && strcmp(text, "2201") < 0)
        FUZZ_CHECK(wb_time_sent(&sent, 1) == time);
    if (time == INT64_MIN || time == INT64_MAX) /* it does not fit */
        return;
    wb_clock_format_wire(time, again);
    FUZZ_CHECK(strcmp(text, again) == 0);
}

static void try_span(const char *text, size_t size)
{
    char again[WB_SPAN_SIZE];
    int64_t span = -1, same = -1;
    if (!wb_expiry_parse(text, size, &span))
        return;
    FUZZ_CHECK(span >= 0);
    wb_clock_format_span(span, again);
    FUZZ_CHECK(wb_expiry_parse(again, strlen(again), &same) && same == span);
}

/* What a transport reads of a message. */
static void try_headers(const char *text, size_t size, int64_t now)
{
    const wb_header headers[] = { { "NServiceBus.TimeToBeReceived", text, 28, size },
                                  { "NServiceBus.TimeSent", text, 20, size } };
    int64_t span = wb_time_to_be_received(headers, 2), sent = wb_time_sent(headers, 2);
    FUZZ_CHECK(span >= 0 && span <= WB_EXPIRY_MAX);
    FUZZ_CHECK(!wb_has_expired(headers, 1, 0, now));
    (void)wb_has_expired(headers, 2, sent, now);
}

void fuzz_one(const void *data, size_t size)
{
    const char *text = fuzz_copy(data, size);
    fuzz_input input = fuzz_begin(data, size);
    int64_t number = (int64_t)(fuzz_large(&input) >> 1);
    char span[WB_SPAN_SIZE], wire[WB_TIMESTAMP_SIZE];
    try_units(text);
    try_time(text);
    try_wire(text);
    try_span(text, size);
    try_headers(text, size, number);
    wb_clock_format_span(number, span); /* any there is */
    wb_clock_format_wire(number, wire);
    try_wire(wire);
}

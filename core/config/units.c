/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"

typedef struct {
    const char *name;
    int64_t factor;
    int is_written; /* 0: read, but never written by format */
} unit;

/* Largest first: format takes the first that divides. */
static const unit durations[] = {
    { "d", INT64_C(86400000000000), 1 }, { "h", INT64_C(3600000000000), 1 },
    { "min", INT64_C(60000000000), 1 },  { "m", INT64_C(60000000000), 0 },
    { "s", INT64_C(1000000000), 1 },     { "ms", INT64_C(1000000), 1 },
    { "us", INT64_C(1000), 1 },          { "ns", 1, 1 },
    { NULL, 0, 0 },
};

static const unit sizes[] = {
    { "TiB", INT64_C(1) << 40, 1 },        { "TB", INT64_C(1000000000000), 0 },
    { "GiB", INT64_C(1) << 30, 1 },        { "GB", INT64_C(1000000000), 0 },
    { "MiB", INT64_C(1) << 20, 1 },        { "MB", INT64_C(1000000), 0 },
    { "KiB", INT64_C(1) << 10, 1 },        { "kB", INT64_C(1000), 0 },
    { "B", 1, 1 },                         { NULL, 0, 0 },
};

static const unit *find_unit(const unit *units, const char *name)
{
    while (units->name && strcmp(units->name, name) != 0)
        units++;
    return units->name ? units : NULL;
}

static int parse(const unit *units, const char *text, int64_t *ret_value)
{
    int64_t value = 0;
    int overflow = 0;
    const char *c = text;

    for (; *c >= '0' && *c <= '9'; c++)
        overflow |= __builtin_mul_overflow(value, INT64_C(10), &value) ||
                    __builtin_add_overflow(value, (int64_t)(*c - '0'), &value);
    if (c == text)
        return WB_UNIT_MALFORMED;
    int is_zero = value == 0 && !overflow;
    const unit *found = is_zero && !*c ? &units[0] : find_unit(units, c);
    if (!found)
        return WB_UNIT_MALFORMED;
    if (overflow || __builtin_mul_overflow(value, found->factor, &value))
        return WB_UNIT_OVERFLOW;
    *ret_value = value;
    return WB_UNIT_OK;
}

static const char *format(const unit *units, int64_t value, char text[WB_UNIT_TEXT_SIZE])
{
    const unit *found = units;
    while (found[1].name && (!found->is_written || value % found->factor != 0))
        found++;
    if (value == 0)
        (void)snprintf(text, WB_UNIT_TEXT_SIZE, "0");
    else
        (void)snprintf(text, WB_UNIT_TEXT_SIZE, "%" PRId64 "%s", value / found->factor,
                       found->name);
    return text;
}

int wb_duration_parse(const char *text, int64_t *ret_nanoseconds)
{
    return parse(durations, text, ret_nanoseconds);
}

int wb_size_parse(const char *text, int64_t *ret_bytes)
{
    return parse(sizes, text, ret_bytes);
}

const char *wb_duration_format(int64_t nanoseconds, char text[WB_UNIT_TEXT_SIZE])
{
    return format(durations, nanoseconds, text);
}

const char *wb_size_format(int64_t bytes, char text[WB_UNIT_TEXT_SIZE])
{
    return format(sizes, bytes, text);
}

/* ".5" are so many nanoseconds; moves on to what follows. */
static int64_t parse_fraction(const char **text)
{
    int64_t value = 0, place = INT64_C(100000000);
    if (**text != '.')
        return 0;
    for ((*text)++; **text >= '0' && **text <= '9'; (*text)++, place /= 10)
        value += (**text - '0') * place;
    return value;
}

int wb_time_parse(const char *text, int64_t *ret_time)
{
    const char separator = strlen(text) > 10 && text[10] == ' ' ? ' ' : 'T';
    int64_t seconds;
    if (!wb_clock_read_date(&text, separator, &seconds) || seconds < 0)
        return WB_UNIT_MALFORMED;
    const int64_t fraction = parse_fraction(&text);
    if (strcmp(text, "Z") != 0)
        return WB_UNIT_MALFORMED;
    if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &seconds) ||
        __builtin_add_overflow(seconds, fraction, &seconds))
        return WB_UNIT_OVERFLOW;
    *ret_time = seconds;
    return WB_UNIT_OK;
}

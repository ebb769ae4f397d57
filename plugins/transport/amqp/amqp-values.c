/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH_MAX 8

void wb_amqp_text_put(wb_amqp_text *text, const void *data, size_t size)
{
    if (text->data && size)
        memcpy(text->data + text->size, data, size);
    text->size += size;
}

static void put_string(wb_amqp_text *text, const char *string)
{
    wb_amqp_text_put(text, string, strlen(string));
}

static void put_signed(wb_amqp_text *text, int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, value);
    put_string(text, digits);
}

static void put_unsigned(wb_amqp_text *text, uint64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRIu64, value);
    put_string(text, digits);
}

/* The shortest form that reads back as the same number. */
static void put_real(wb_amqp_text *text, double value, int precision, int most)
{
    char digits[40];
    do
        (void)snprintf(digits, sizeof digits, "%.*g", precision, value);
    while (precision++ < most && strtod(digits, NULL) != value);
    char *comma = strchr(digits, ','); /* some locale's decimal point */
    if (comma)
        *comma = '.';
    put_string(text, digits);
}

static void put_float(wb_amqp_text *text, float value)
{
    char digits[40];
    int precision = 6;
    do
        (void)snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
    while (precision++ < 9 && strtof(digits, NULL) != value);
    char *comma = strchr(digits, ',');
    if (comma)
        *comma = '.';
    put_string(text, digits);
}

static void put_decimal(wb_amqp_text *text, amqp_decimal_t decimal)
{
    char digits[300];
    int scale = decimal.decimals;
    int size = snprintf(digits, sizeof digits, "%0*" PRIu32, scale + 1, decimal.value);
    wb_amqp_text_put(text, digits, (size_t)(size - scale));
    if (scale == 0)
        return;
    put_string(text, ".");
    wb_amqp_text_put(text, digits + size - scale, (size_t)scale);
}

static void put_timestamp(wb_amqp_text *text, uint64_t seconds)
{
    char stamp[64];
    time_t time = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&time, &tm) ||
        strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S:000000 Z", &tm) == 0)
        put_unsigned(text, seconds);
    else
        put_string(text, stamp);
}

static void put_value(wb_amqp_text *text, const amqp_field_value_t *value, int depth);

static void put_table(wb_amqp_text *text, const amqp_table_t *table, int depth)
{
    for (int i = 0; i < table->num_entries && depth < DEPTH_MAX; i++) {
        if (i > 0)
            put_string(text, ",");
        wb_amqp_text_put(text, table->entries[i].key.bytes, table->entries[i].key.len);
        put_string(text, "=");
        put_value(text, &table->entries[i].value, depth + 1);
    }
}

static void put_list(wb_amqp_text *text, const amqp_array_t *list, int depth)
{
    for (int i = 0; i < list->num_entries && depth < DEPTH_MAX; i++) {
        if (i > 0)
            put_string(text, ";");
        put_value(text, &list->entries[i], depth + 1);
    }
}

static void put_value(wb_amqp_text *text, const amqp_field_value_t *value, int depth)
{
    switch (value->kind) {
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES:
        wb_amqp_text_put(text, value->value.bytes.bytes, value->value.bytes.len);
        break;
    case AMQP_FIELD_KIND_BOOLEAN: put_string(text, value->value.boolean ? "True" : "False"); break;
    case AMQP_FIELD_KIND_I8: put_signed(text, value->value.i8); break;
    case AMQP_FIELD_KIND_U8: put_unsigned(text, value->value.u8); break;
    case AMQP_FIELD_KIND_I16: put_signed(text, value->value.i16); break;
    case AMQP_FIELD_KIND_U16: put_unsigned(text, value->value.u16); break;
    case AMQP_FIELD_KIND_I32: put_signed(text, value->value.i32); break;
    case AMQP_FIELD_KIND_U32: put_unsigned(text, value->value.u32); break;
    case AMQP_FIELD_KIND_I64: put_signed(text, value->value.i64); break;
    case AMQP_FIELD_KIND_U64: put_unsigned(text, value->value.u64); break;
    case AMQP_FIELD_KIND_F32: put_float(text, value->value.f32); break;
    case AMQP_FIELD_KIND_F64: put_real(text, value->value.f64, 15, 17); break;
    case AMQP_FIELD_KIND_DECIMAL: put_decimal(text, value->value.decimal); break;
    case AMQP_FIELD_KIND_TIMESTAMP: put_timestamp(text, value->value.u64); break;
    case AMQP_FIELD_KIND_TABLE: put_table(text, &value->value.table, depth); break;
    case AMQP_FIELD_KIND_ARRAY: put_list(text, &value->value.array, depth); break;
    default: break; /* void is an empty string */
    }
}

void wb_amqp_value_put(wb_amqp_text *text, const amqp_field_value_t *value)
{
    put_value(text, value, 0);
}

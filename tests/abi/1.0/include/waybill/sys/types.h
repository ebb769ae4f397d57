/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of types, as the header NServiceBus.EnclosedMessageTypes lists them: from the most
 * derived to its bases, with ';' between, each perhaps with its assembly, and so the arguments
 * of a generic type:
 *
 *     Shop.Wrapper`1[[System.Int32, System.Private.CoreLib, Version=10.0.0.0]], Shop;Shop.Base
 *
 * Waybill's names are without assemblies: "Shop.Wrapper`1[[System.Int32]]", "Shop.Base". A
 * transport that publishes walks them: whoever subscribed to any of them gets the event.
 *
 * Links nothing. Change log: 1.0 first version.
 */
#ifndef WAYBILL_SYS_TYPES_H
#define WAYBILL_SYS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest name of a type with its NUL byte. */
#define WB_TYPE_SIZE 256

/* Of this header alone, it crosses no boundary: fixed for ever. A name while it is read. At each depth of brackets there is a list (arguments, or the ranks of
 * an array) or one name of its own, whose assembly follows after a comma. */
typedef struct wb_type_reader {
    char *name;
    size_t size;    /* also of what does not fit */
    uint64_t lists; /* a bit for each depth */
    unsigned depth;
    int in_assembly;
    char before;
} wb_type_reader;

static inline void wb_type_put(wb_type_reader *reader, char byte)
{
    if (reader->size < WB_TYPE_SIZE - 1)
        reader->name[reader->size] = byte;
    reader->size++;
    reader->before = byte;
}

static inline void wb_type_trim(wb_type_reader *reader)
{
    while (reader->size && reader->size < WB_TYPE_SIZE && reader->name[reader->size - 1] == ' ')
        reader->size--;
}

static inline void wb_type_open(wb_type_reader *reader, int in_list)
{
    int is_name = in_list && (reader->before == '[' || reader->before == ',');
    if (reader->depth < 63)
        reader->depth++;
    else
        reader->size = WB_TYPE_SIZE; /* deeper than any name */
    reader->lists &= ~(UINT64_C(1) << reader->depth);
    reader->lists |= (uint64_t)!is_name << reader->depth;
    wb_type_put(reader, '[');
}

static inline void wb_type_close(wb_type_reader *reader)
{
    reader->depth--;
    reader->in_assembly = 0;
    wb_type_trim(reader);
    wb_type_put(reader, ']');
}

static inline void wb_type_step(wb_type_reader *reader, char byte)
{
    int in_list = (int)(reader->lists >> reader->depth & 1);
    if (byte == ']' && reader->depth)
        wb_type_close(reader);
    else if (reader->in_assembly || (byte == ' ' && (in_list || !reader->size || reader->before == '[')))
        return;
    else if (byte == '[')
        wb_type_open(reader, in_list);
    else if (byte == ',' && !in_list)
        reader->in_assembly = 1;
    else
        wb_type_put(reader, byte);
}

/** Walk the names in a list of types: start with *position = the header's value.
 *  @return the next name, in `name`, without assemblies, or NULL at the end. What is no name
 *  (empty, or longer than any can be) is passed over. */
static inline const char *wb_type_next(const char **position, char name[WB_TYPE_SIZE], size_t *ret_size)
{
    while (**position) {
        wb_type_reader reader = { name, 0, 0, 0, 0, 0 };
        for (; **position && **position != ';'; (*position)++)
            wb_type_step(&reader, **position);
        *position += **position == ';';
        wb_type_trim(&reader);
        if (reader.size == 0 || reader.size >= WB_TYPE_SIZE)
            continue;
        name[reader.size] = '\0';
        *ret_size = reader.size;
        return name;
    }
    return NULL;
}

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Types and what they are derived from, as the configuration tells: whoever subscribed to a base
 * gets what is sent as the derived type, too.
 */
#ifndef WB_BASE_TYPE_BASES_H
#define WB_BASE_TYPE_BASES_H

#include <stddef.h>

/** Longest list of names of one type and its bases, in bytes: it becomes a header. */
#define WB_TYPE_LIST_MAX 2048

/** A type and its bases, the nearest first. */
typedef struct wb_type_bases {
    const char *type; /* without assemblies, as all names here */
    const char *list; /* "Type;Base;...": what the header NServiceBus.EnclosedMessageTypes says */
} wb_type_bases;

/** The entry of a type, whatever assemblies it is given with; NULL when it has no bases. */
const wb_type_bases *wb_type_bases_find(const wb_type_bases *bases, size_t count, const char *type);

#endif

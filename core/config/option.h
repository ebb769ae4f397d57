/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables at work: a group of the configuration is checked against a table of
 * wb_option and fills a struct. Used for the core's own options and for each plugin's.
 *
 * Everything wrong in the group is reported, not the first thing only. Any string may be
 * a reference ("env:NAME", "file:PATH", see secret.h); what it resolves to is treated as
 * a secret. A literal value of an option flagged WB_OPTION_SECRET is a warning.
 */
#ifndef WB_CONFIG_OPTION_H
#define WB_CONFIG_OPTION_H

#include "core/config/conf_node.h"
#include "core/config/secret.h"

/** What parsing needs besides the table. */
typedef struct wb_option_scope {
    wb_arena *arena; /* owns every string and array that is filled in */
    wb_secrets *secrets;
    wb_problems *problems;
    const char *subject;          /* before each problem: `endpoint "a": transport "b": `, or "" */
    const char *const *elsewhere; /* NULL-terminated: names the caller reads itself; or NULL */
} wb_option_scope;

/** Fill the fields of `target` from `group`, or from the defaults alone when it is NULL.
 *
 *  `stride` is the distance of two options in memory: a plugin built with older or newer
 *  headers has shorter or longer ones. `origins`, unless NULL, has `count` elements and
 *  gets the place of each option; `group_at` is the place of those that were not set.
 *
 *  @return WB_OK, or WB_FATAL when at least one error was added. Fields of wrong options
 *  hold their defaults then. */
int wb_options_parse(const wb_option_scope *scope, const wb_option *options, size_t count,
                     size_t stride, const wb_conf_node *group, wb_conf_origin group_at,
                     void *target, wb_conf_origin *origins);

/** The option at an index of a table with that stride, complete with zeroes. */
wb_option wb_option_at(const wb_option *options, size_t stride, size_t index);

/** Whether the default of an option is a value of its type, in its range. Types, choices and name
 *  are right already. @return WB_OK, or WB_FATAL with the fault in words: `option "port" = "x" is ...` */
int wb_option_check_default(const wb_option *option, char *reason, size_t reason_size);

/** The type in words, for messages and `--describe`: "duration". */
const char *wb_option_type_name(uint32_t type);

/** The size of the field a type fills, 0 for an unknown type. */
size_t wb_option_field_size(uint32_t type);

/** A number of that type as a user would write it: "20ms", "16MiB", "4". */
const char *wb_option_format(uint32_t type, int64_t value, char *text, size_t size);

#endif

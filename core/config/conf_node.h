/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of a configuration file: names, values, and where each stands. What the tree
 * means is decided by option tables (option.h), not here.
 */
#ifndef WB_CONFIG_CONF_NODE_H
#define WB_CONFIG_CONF_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/config/problems.h"

/* Types of node. */
#define WB_CONF_GROUP 1   /* { name = value; ... }: children have distinct names */
#define WB_CONF_LIST 2    /* ( ... ) or [ ... ]: children have no name */
#define WB_CONF_STRING 3
#define WB_CONF_INTEGER 4
#define WB_CONF_BOOLEAN 5 /* integer, 0 or 1 */
#define WB_CONF_FLOAT 6   /* no option takes one; kept so that it can be reported */

typedef struct wb_conf_node wb_conf_node;
struct wb_conf_node {
    const char *name; /* NULL in lists */
    int type;
    const char *string;
    int64_t integer;
    double number;
    wb_conf_origin at; /* is_set is 1; includes name the included file */
    wb_conf_node *children;
    size_t child_count;
};

/** Read a file with its includes (`@include "FILE"`, relative to the including file) into
 *  a tree owned by `arena`.
 *
 *  Limits: 1 MiB with all includes, includes 10 deep, groups and lists 16 deep, integers
 *  of 18 digits. A file that belongs neither to root nor to the effective user, or that others
 *  may write, is refused: it names code to load.
 *
 *  @return the root group, or NULL with one problem added. A syntax error is the only
 *  thing that is reported alone: nothing behind it can be judged. */
const wb_conf_node *wb_conf_read(wb_arena *arena, const char *path, wb_problems *problems);

/** Read one value as it would stand behind `name =` in a file: `["a", "b"]`. All of it stands at `at`.
 *  @return its node, owned by `arena` as are its children, or NULL: it is none, or not one. */
const wb_conf_node *wb_conf_read_value(wb_arena *arena, const char *text, wb_conf_origin at);

/** The child of that name, or NULL. */
const wb_conf_node *wb_conf_child(const wb_conf_node *group, const char *name);

/** A path as written at `at`: a relative one starts at that file's directory. */
const char *wb_conf_path(wb_arena *arena, wb_conf_origin at, const char *path);

/** The same, absolute: it names the same file when the process changes its directory. */
const char *wb_conf_absolute(wb_arena *arena, wb_conf_origin at, const char *path);

/** The node's value as its author wrote it, cut to fit, for messages: `"5x"`, `20`. */
const char *wb_conf_text(const wb_conf_node *node, char *text, size_t size);

#endif

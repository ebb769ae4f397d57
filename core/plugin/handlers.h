/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler modules of an endpoint: loaded, checked, and put into one table by type.
 *
 * A module is a shared object that exports wb_handlers() (see <waybill/handler.h>). It is
 * under the same rules of trust as a plugin, bound now, local, and never unloaded. It is
 * opened with plain dlopen(): libltdl cannot bind at once, and a module has no preloaded
 * form. Load the persistence first: its client library is then visible to modules. Its hooks are
 * called by core/pipeline/hooks.h.
 */
#ifndef WB_PLUGIN_HANDLERS_H
#define WB_PLUGIN_HANDLERS_H

#include <waybill/handler.h>

#include "core/config/configuration.h"

/** One type: exactly one of the two functions is set. */
typedef struct wb_handler_entry {
    const char *type; /* without assemblies, as wb_type_next() has it */
    wb_handler_fn one;
    wb_batch_handler_fn batch;
    const char *module; /* the path it came from */
    size_t module_at;   /* which one of wb_handler_set.modules that is */
} wb_handler_entry;

/** The type of the handler that gets what no other does. */
#define WB_EVERY_OTHER_TYPE "*"

/** A module that was loaded, and its hooks; NULL: it has none. */
typedef struct wb_loaded_module {
    const char *path;
    wb_conf_origin at; /* where the configuration names it */
    wb_check_fn check;
    wb_open_fn open;
    wb_open_fn worker_open;
    wb_close_fn worker_close;
    wb_close_fn close;
} wb_loaded_module;

/** All types of an endpoint, sorted byte for byte. Constant once loaded; any thread. */
typedef struct wb_handler_set {
    wb_handler_entry *entries;
    size_t count;
    const char **types; /* types[i] is entries[i].type, for wb_endpoint_info */
    const wb_handler_entry *other; /* of WB_EVERY_OTHER_TYPE, one of the entries; NULL: there is none */
    wb_loaded_module *modules;     /* in the order of the configuration */
    size_t module_count;
} wb_handler_set; /* all zero is empty */

/** Load every module of the endpoint. All problems are added, not the first only.
 *  @return WB_OK, or WB_FATAL when there was one; the set is valid either way. */
int wb_handlers_load(wb_config *config, const wb_endpoint_config *endpoint, wb_handler_set *set,
                     wb_problems *problems);

/** The same of a module that is built in; `path` is what it is called, `at` what asks for it. */
int wb_handlers_take(wb_config *config, const wb_endpoint_config *endpoint, const wb_handler_module *module,
                     const char *path, wb_conf_origin at, wb_handler_set *set, wb_problems *problems);

/** The entry for a type of that many bytes, or NULL; never `other`. */
const wb_handler_entry *wb_handlers_find(const wb_handler_set *set, const char *type, size_t size);

/** Frees the table; the modules stay loaded. */
void wb_handlers_free(wb_handler_set *set);

#endif

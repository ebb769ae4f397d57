/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler modules of an endpoint: loaded, checked, and put into one table by type.
 *
 * A module is a shared object that exports wb_handlers() (see <waybill/handler.h>). It is
 * under the same rules of trust as a plugin, bound now, local, and never unloaded. It is
 * opened with plain dlopen(): libltdl cannot bind at once, and a module has no preloaded
 * form. Load the persistence first: its client library is then visible to modules.
 */
#ifndef WB_PLUGIN_HANDLERS_H
#define WB_PLUGIN_HANDLERS_H

#include <waybill/handler.h>

#include "core/config/config.h"

/** One type: exactly one of the two functions is set. */
typedef struct wb_handler_entry {
    const char *type; /* without assemblies, as wb_type_next() has it */
    wb_handler_fn one;
    wb_batch_handler_fn batch;
    const char *module; /* the path it came from */
} wb_handler_entry;

/** All types of an endpoint, sorted byte for byte. Constant once loaded; any thread. */
typedef struct wb_handler_set {
    wb_handler_entry *entries;
    size_t count;
    const char **types; /* types[i] is entries[i].type, for wb_endpoint_info */
} wb_handler_set; /* all zero is empty */

/** Load every module of the endpoint. All problems are added, not the first only.
 *  @return WB_OK, or WB_FATAL when there was one; the set is valid either way. */
int wb_handlers_load(wb_config *config, const wb_endpoint_config *endpoint, wb_handler_set *set,
                     wb_problems *problems);

/** The entry for a type of that many bytes, or NULL. */
const wb_handler_entry *wb_handlers_find(const wb_handler_set *set, const char *type, size_t size);

/** Frees the table; the modules stay loaded. */
void wb_handlers_free(wb_handler_set *set);

#endif

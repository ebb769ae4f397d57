/* SPDX-License-Identifier: Apache-2.0
 *
 * Setup: from a configuration file to endpoints that could run. Loads the file, the
 * plugins, their options and the handler modules, and negotiates. Connects to nothing and
 * creates no plugin instance.
 *
 * Main thread, before any other starts. What it returns is constant afterwards.
 */
#ifndef WB_ENDPOINT_SETUP_H
#define WB_ENDPOINT_SETUP_H

#include <waybill/sys/observer.h>
#include <waybill/sys/persistence.h>
#include <waybill/sys/transport.h>

#include "core/config/configuration.h"
#include "core/negotiate/negotiate.h"
#include "core/plugin/handlers.h"

/** One endpoint. The pointers lead into the setup or into loaded plugins. */
typedef struct wb_endpoint_setup {
    const wb_endpoint_config *config;
    const wb_plugin *transport;
    const wb_transport_ops *transport_ops;
    const void *transport_config;
    const char *transport_path;
    const wb_plugin *persistence; /* NULL: none, and so are the next three */
    const wb_persistence_ops *persistence_ops;
    const void *persistence_config;
    const char *persistence_path;
    const wb_plugin *store; /* of a deduplication apart from the outbox; NULL: none, and so are the next three */
    const wb_persistence_ops *store_ops;
    const void *store_config;
    const char *store_path;
    const wb_plugin *observer; /* NULL: none, and so are the next two */
    const wb_observer_ops *observer_ops;
    const void *observer_config;
    wb_handler_set handlers;
    wb_plan plan;
    /** For create() of the transport, and of the persistence: that of a send-only endpoint with outbox uses
     *  the tables of its processor. Valid as long as the setup. */
    wb_endpoint_info info;
    wb_endpoint_info persistence_info;
    /** For create() of that store. What it keeps is no other endpoint's: its name is none that one can have. */
    wb_endpoint_info store_info;
    /** For create() of the observer: its name is the endpoint's own, whatever queue that receives from. */
    wb_endpoint_info observer_info;
    int is_planned; /* 1: what the core reads has no errors, and plan and infos are right, whatever is wrong with plugins' options */
    int is_ready;   /* 0: it has errors; the fields above may be NULL */
} wb_endpoint_setup;

typedef struct wb_setup {
    wb_config *config;
    wb_endpoint_setup *endpoints; /* as in the file */
    size_t endpoint_count;
} wb_setup;

/** Do not load handler modules: for programs that only send. The set is empty then, and
 *  so are info.types, which otherwise are all types of the handlers but the commands. */
#define WB_SETUP_WITHOUT_HANDLERS 1u
/** Load plugins and their options only: no handler modules, no negotiation, no plan. For
 *  what tries a plugin in ways of its own. */
#define WB_SETUP_PLUGINS_ONLY 2u
/** An installation makes what programs write messages with in SQL (sys/written.h), too. */
#define WB_SETUP_SQL_API 4u

/** Load a configuration file. Every problem is added to `problems`, warnings too, from
 *  syntax to negotiation, for all endpoints.
 *  @return WB_OK; or WB_FATAL with at least one error added, and *ret_setup is then either
 *  NULL or holds what could be loaded. Free it with wb_setup_free() in any case. */
int wb_setup_load(const char *path, uint32_t flags, wb_setup **ret_setup, wb_problems *problems);

/** Wipes secrets and frees. Plugins and modules stay loaded. NULL is allowed. */
void wb_setup_free(wb_setup *setup);

/** The endpoint of that name, or NULL. */
const wb_endpoint_setup *wb_setup_endpoint(const wb_setup *setup, const char *name);

#endif

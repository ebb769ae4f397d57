/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores: the endpoints the persistence kit works on.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

/* Endpoint names have at most 200 characters; what is appended has at most 32. */
#define NAME_KEPT 168

static wb_endpoint_info make_info(const wb_kit *kit, const char *name, int32_t delays)
{
    wb_endpoint_info info = kit->endpoint->info;
    info.struct_size = sizeof info;
    info.name = name;
    info.mode = WB_MODE_RECEIVE_ONLY;
    info.outbox = (kit->plugin->capabilities & WB_CAP_OUTBOX) != 0;
    info.delays = delays;
    info.sql_api = (kit->plugin->capabilities & WB_CAP_WRITTEN) != 0;
    info.subscriptions = (kit->plugin->capabilities & WB_CAP_SUBSCRIPTIONS) != 0;
    info.positions = (kit->plugin->capabilities & WB_CAP_POSITIONS) != 0;
    info.failures = (kit->plugin->capabilities & WB_CAP_FAILED) != 0;
    info.types = NULL;
    info.type_count = 0;
    return info;
}

void wb_store_name(wb_kit *kit, size_t which, char *name, size_t size)
{
    const char *suffix = which ? ".conformance.2" : ".conformance";
    (void)snprintf(name, size, "%.*s%s", NAME_KEPT, kit->endpoint->config->name, suffix);
}

int wb_store_try(wb_kit *kit, wb_store *store, const char *name, int32_t delays, wb_error *error)
{
    (void)snprintf(store->name, sizeof store->name, "%s", name);
    store->info = make_info(kit, store->name, delays);
    store->ops = kit->plugin->ops;
    store->instance = NULL;
    wb_host_init(&store->host, store->name, kit->plugin->name);
    int r = store->ops->create(&store->host.host, &store->info, kit->endpoint->persistence_config,
                               &store->instance, error);
    if (r != WB_OK)
        store->instance = NULL;
    return r;
}

int32_t wb_store_delays(const wb_kit *kit)
{
    return kit->plugin->capabilities & WB_CAP_DELAY_STORE ? WB_DELAYS_BY_STORE : WB_DELAYS_BY_NOBODY;
}

int wb_store_refuses(wb_kit *kit, const char *name, int result, const wb_error *error)
{
    if (result != WB_FATAL || error->result != result || !error->text[0])
        return 0;
    wb_kit_skip(kit, "a name of %zu bytes is refused: %s", strlen(name), error->text);
    return 1;
}

wb_persistence *wb_store_create(wb_kit *kit, wb_store *store, const char *name)
{
    return wb_store_create_with(kit, store, name, wb_store_delays(kit));
}

wb_persistence *wb_store_create_with(wb_kit *kit, wb_store *store, const char *name,
                                     int32_t delays)
{
    wb_error error = { 0 };
    int r = wb_store_try(kit, store, name, delays, &error);
    wb_kit_check(kit, r == WB_OK && store->instance, "could not make an instance: %s", error.text);
    return store->instance;
}

static void destroy(void *argument)
{
    wb_store *store = argument;
    if (store->instance)
        store->ops->destroy(store->instance);
    free(store);
}

wb_store *wb_store_again(wb_kit *kit, size_t which)
{
    char name[256];
    wb_store *store = wb_alloc_zero(1, sizeof *store);
    wb_kit_defer(kit, destroy, store);
    wb_store_name(kit, which, name, sizeof name);
    return wb_store_create(kit, store, name) ? store : NULL;
}

void wb_stores_close(wb_stores_kit *kit)
{
    for (size_t i = 0; i < WB_STORES; i++)
        if (kit->stores[i].instance) {
            kit->stores[i].ops->destroy(kit->stores[i].instance);
            kit->stores[i].instance = NULL;
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/loader.h"

#include <dlfcn.h>
#include <ltdl.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/plugin/abi.h"
#include "core/plugin/image.h"
#include "core/plugin/search.h"
#include "core/plugin/trust.h"

typedef const wb_plugin *(*entry_fn)(void);

/* Loaded plugins stay loaded, and so do these. */
typedef struct loaded {
    struct loaded *next;
    const wb_plugin *plugin;
    char path[];
} loaded;

static loaded *all_loaded;

static int refuse(wb_error *error, const char *path, const char *reason)
{
    return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0, "plugin \"%s\" is refused: %s", path,
                        reason ? reason : "unknown error");
}

static int start_libltdl(wb_error *error)
{
    static int is_started;
    if (is_started)
        return WB_OK;
    /* Only absolute paths are opened, so this changes nothing but what a plugin's own use
     * of libltdl might find. */
    unsetenv("LTDL_LIBRARY_PATH");
    if (lt_dlinit() != 0)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, 0, "cannot start libltdl: %s",
                            lt_dlerror());
    is_started = 1;
    return WB_OK;
}

static lt_dlhandle open_module(const char *path)
{
    lt_dladvise advise;
    lt_dlhandle module = NULL;

    if (lt_dladvise_init(&advise) != 0)
        return NULL;
    if (lt_dladvise_local(&advise) == 0 && lt_dladvise_resident(&advise) == 0)
        module = lt_dlopenadvise(path, advise);
    /* lt_dlerror() keeps the failure of the open: destroying the advice sets none */
    lt_dladvise_destroy(&advise);
    return module;
}

static entry_fn find_entry(lt_dlhandle module, const char *symbol)
{
    entry_fn entry = NULL;
    void *address = lt_dlsym(module, symbol);
    memcpy(&entry, &address, sizeof entry);
    return entry;
}

static int open_and_check(const char *path, uint32_t kind, const char *name,
                          const wb_plugin **ret_plugin, wb_error *error)
{
    char fault[WB_IMAGE_FAULT_SIZE], symbol[WB_PLUGIN_ENTRY_SIZE];
    if (wb_image_fault(path, fault))
        return refuse(error, path, fault);
    /* libltdl binds lazily: a symbol that is missing would end the process in the middle
     * of a transaction. Opening it bound first makes that a refusal; libltdl then gets the
     * same object. */
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
        return refuse(error, path, dlerror());
    lt_dlhandle module = open_module(path);
    if (!module)
        return refuse(error, path, lt_dlerror());
    wb_plugin_entry_name(name, symbol);
    entry_fn entry = find_entry(module, symbol);
    if (!entry)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                            "plugin \"%s\" is refused: it does not export \"%s\"; was it built with "
                            "WB_PLUGIN(%.*s, ...)?",
                            path, symbol, (int)strlen(name), symbol);
    const wb_plugin *plugin = entry();
    int result = wb_plugin_check(plugin, kind, name, path, error);
    if (result == WB_OK)
        *ret_plugin = plugin;
    return result;
}

/* Handler modules that call the client library need not link it: its symbols are made
 * global. The plugin itself was loaded local. */
static void promote_client_library(const wb_plugin *plugin)
{
    if (!WB_HAS(plugin, wb_plugin, client_library))
        return;
    if (!dlopen(plugin->client_library, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD))
        wb_log_event(WB_LOG_WARNING, "client library is not visible to handler modules",
                     { "plugin", plugin->name }, { "library", plugin->client_library });
}

static const loaded *find_loaded(const char *path)
{
    const loaded *found = all_loaded;
    while (found && strcmp(found->path, path) != 0)
        found = found->next;
    return found;
}

static const loaded *remember(const wb_plugin *plugin, const char *path)
{
    const size_t size = strlen(path) + 1;
    loaded *entry = wb_alloc(sizeof *entry + size);
    *entry = (loaded){ all_loaded, plugin };
    memcpy(entry->path, path, size);
    all_loaded = entry;
    return entry;
}

/* What is loaded already may have been asked for as the other kind. */
static int load(const char *path, uint32_t kind, const char *name, const loaded **ret_entry, wb_error *error)
{
    const wb_plugin *plugin = NULL;
    const loaded *entry = find_loaded(path);
    int result = entry ? wb_plugin_check(entry->plugin, kind, name, path, error) : start_libltdl(error);

    if (result == WB_OK && !entry && (result = open_and_check(path, kind, name, &plugin, error)) == WB_OK) {
        promote_client_library(plugin);
        entry = remember(plugin, path);
    }
    *ret_entry = entry;
    return result;
}

static int load_found(const char *found, uint32_t kind, const char *name, const wb_plugin **ret_plugin,
                      const char **ret_path, wb_error *error)
{
    char path[PATH_MAX];
    const loaded *entry = NULL;
    int result = wb_trust_check(found, path, error);

    if (result == WB_OK)
        result = load(path, kind, name, &entry, error);
    if (result != WB_OK)
        return result;
    *ret_plugin = entry->plugin;
    if (ret_path)
        *ret_path = entry->path;
    return WB_OK;
}

int wb_plugin_load(const wb_config *config, uint32_t kind, const char *name,
                   const wb_plugin **ret_plugin, const char **ret_path, wb_error *error)
{
    char found[PATH_MAX];
    int result = wb_plugin_find(config, kind, name, found, error);
    return result == WB_OK ? load_found(found, kind, name, ret_plugin, ret_path, error) : result;
}

int wb_plugin_load_file(const wb_plugin_file *file, const wb_plugin **ret_plugin, const char **ret_path,
                        wb_error *error)
{
    return load_found(file->path, file->kind, file->name, ret_plugin, ret_path, error);
}

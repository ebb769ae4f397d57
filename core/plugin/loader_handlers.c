/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <waybill/sys/types.h>

#include "core/base/error.h"
#include "core/plugin/handlers.h"
#include "core/plugin/image.h"
#include "core/plugin/trust.h"

#define REASON_SIZE 200
#define END_OF(type, field) (offsetof(type, field) + sizeof(((const type *)0)->field))

/* Of a module of 1.0. */
#define WB_HANDLER_MODULE_SIZE END_OF(wb_handler_module, close)

typedef const wb_handler_module *(*module_fn)(void);

/* One module while it is loaded. */
typedef struct {
    wb_config *config;
    const wb_endpoint_config *endpoint;
    const wb_handler_choice *choice;
    wb_handler_set *set;
    wb_problems *problems;
    const char *path; /* canonical */
} loading;

#define complain(l, ...)                                                                           \
    wb_problems_add((l)->problems, WB_LOG_ERROR, (l)->choice->at, __VA_ARGS__)

static int is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Relative paths start at the configuration file, then at the installed directory. */
static const char *find_module(const loading *l)
{
    const char *near = wb_conf_path(&l->config->arena, l->choice->at, l->choice->path);
    char installed[PATH_MAX];

    if (is_there(near))
        return near;
    int size = snprintf(installed, sizeof installed, "%s/%s", WB_HANDLER_DIR, l->choice->path);
    if (l->choice->path[0] == '/')
        complain(l, "endpoint \"%s\": there is no handler module \"%s\"", l->endpoint->name, near);
    else if (size > 0 && (size_t)size < sizeof installed && is_there(installed))
        return wb_arena_copy(&l->config->arena, installed, strlen(installed));
    else
        complain(l,
                 "endpoint \"%s\": there is no handler module \"%s\", neither \"%s\" nor \"%s\"",
                 l->endpoint->name, l->choice->path, near, installed);
    return NULL;
}

static const char *trusted_path(const loading *l)
{
    char canonical[PATH_MAX];
    wb_error error;
    const char *path = find_module(l);

    if (!path)
        return NULL;
    if (wb_trust_check(path, canonical, &error) != WB_OK) {
        complain(l, "endpoint \"%s\": handler module %s", l->endpoint->name, error.text);
        return NULL;
    }
    return wb_arena_copy(&l->config->arena, canonical, strlen(canonical));
}

static int open_module(const loading *l, const wb_handler_module **ret_module)
{
    module_fn entry = NULL;
    char text[WB_IMAGE_FAULT_SIZE];
    const char *fault = wb_image_fault(l->path, text);
    void *handle = fault ? NULL : dlopen(l->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        complain(l, "endpoint \"%s\": handler module \"%s\" is refused: %s", l->endpoint->name,
                 l->path, fault ? fault : dlerror());
        return WB_FATAL;
    }
    void *address = dlsym(handle, "wb_handlers");
    memcpy(&entry, &address, sizeof entry);
    if (!entry) {
        complain(l,
                 "endpoint \"%s\": handler module \"%s\" is refused: it does not export "
                 "\"wb_handlers\"; put WB_HANDLERS(...) at file level",
                 l->endpoint->name, l->path);
        return WB_FATAL;
    }
    *ret_module = entry();
    return WB_OK;
}

/* What is wrong with its table, or what of it this host does not offer; empty when nothing is. */
static void find_fault(const wb_handler_module *module, char reason[REASON_SIZE])
{
    reason[0] = '\0';
    if (!module)
        (void)snprintf(reason, REASON_SIZE, "its wb_handlers() returns no table");
    else if (module->struct_size < END_OF(wb_handler_module, handlers))
        (void)snprintf(reason, REASON_SIZE, "its table has %zu bytes, one of ABI 1.0 has %zu; rebuild the module",
                       module->struct_size, WB_HANDLER_MODULE_SIZE);
    else if (module->struct_size < WB_HANDLER_MODULE_SIZE)
        (void)snprintf(reason, REASON_SIZE, "it was built with headers from before 1.0; rebuild the module");
    else if (module->abi_major != WB_HANDLER_ABI_MAJOR)
        (void)snprintf(reason, REASON_SIZE, "it was built for ABI %u, this host offers ABI %u.%u; rebuild the module",
                       module->abi_major, WB_HANDLER_ABI_MAJOR, WB_HANDLER_ABI_MINOR);
    else if (module->abi_minor_needed > WB_HANDLER_ABI_MINOR)
        (void)snprintf(reason, REASON_SIZE, "it needs ABI %u.%u, this host offers ABI %u.%u; use a newer waybill",
                       module->abi_major, module->abi_minor_needed, WB_HANDLER_ABI_MAJOR, WB_HANDLER_ABI_MINOR);
    else if (module->handler_stride < END_OF(wb_handler, one))
        (void)snprintf(reason, REASON_SIZE,
                       "its handlers are %zu bytes apart, one has %zu at least; handler_stride is sizeof(wb_handler)",
                       module->handler_stride, END_OF(wb_handler, one));
    else if (module->handler_count && !module->handlers)
        (void)snprintf(reason, REASON_SIZE, "it has %zu handlers by its count, but no table of them",
                       module->handler_count);
}

static int check_module(const loading *l, const wb_handler_module *module)
{
    char reason[REASON_SIZE];
    find_fault(module, reason);
    if (!reason[0])
        return WB_OK;
    complain(l, "endpoint \"%s\": handler module \"%s\" is refused: %s", l->endpoint->name, l->path, reason);
    return WB_FATAL;
}

/* What somebody may take for a pattern. */
static int is_pattern(const char *type)
{
    return strchr(type, '*') && strcmp(type, WB_EVERY_OTHER_TYPE) != 0;
}

/* The name without assemblies, which is how messages are compared with it.
 * @return NULL when it is no name of a type. */
static const char *name_of(const loading *l, const char *type)
{
    const char *position = type ? type : "";
    char name[WB_TYPE_SIZE];
    size_t size;
    if (!wb_type_next(&position, name, &size) || *position)
        return NULL;
    return strcmp(name, type) == 0 ? type : wb_arena_copy(&l->config->arena, name, size);
}

static const wb_handler_entry *find_type(const wb_handler_set *set, const char *type)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->entries[i].type, type) == 0)
            return &set->entries[i];
    return NULL;
}

static int check_handler(const loading *l, const wb_handler *handler)
{
    const char *name = l->endpoint->name;
    const wb_handler_entry *other;
    if (!handler->type)
        complain(l,
                 "endpoint \"%s\": handler module \"%s\" has a handler whose type is not 1 to %d "
                 "bytes long, or names several",
                 name, l->path, WB_TYPE_SIZE - 1);
    else if (is_pattern(handler->type))
        complain(l,
                 "endpoint \"%s\": handler module \"%s\": type \"%s\" is no pattern: only \"*\" alone stands for "
                 "other types, for all that no handler is for",
                 name, l->path, handler->type);
    else if (!handler->one == !handler->batch)
        complain(l,
                 "endpoint \"%s\": handler module \"%s\": type \"%s\" must have exactly one "
                 "function; use WB_HANDLER or WB_BATCH_HANDLER",
                 name, l->path, handler->type);
    else if ((other = find_type(l->set, handler->type)))
        complain(l,
                 "endpoint \"%s\": type \"%s\" is handled by \"%s\" and again by \"%s\"; an "
                 "endpoint has one handler for a type",
                 name, handler->type, other->module, l->path);
    else
        return WB_OK;
    return WB_FATAL;
}

static void add_module(const loading *l, const wb_handler_module *module)
{
    wb_handler_set *set = l->set;
    set->modules = wb_realloc(set->modules, (set->module_count + 1) * sizeof *set->modules);
    set->modules[set->module_count++] = (wb_loaded_module){ .path = l->path,
                                                            .at = l->choice->at,
                                                            .check = module->check,
                                                            .open = module->open,
                                                            .worker_open = module->worker_open,
                                                            .worker_close = module->worker_close,
                                                            .close = module->close };
}

/* One of its rows, complete with zeroes. */
static wb_handler handler_at(const wb_handler_module *module, size_t index)
{
    const size_t stride = module->handler_stride;
    wb_handler handler = { NULL, NULL, NULL };
    memcpy(&handler, (const char *)module->handlers + index * stride, stride < sizeof handler ? stride : sizeof handler);
    return handler;
}

static void add_handlers(const loading *l, const wb_handler_module *module)
{
    for (size_t i = 0; i < module->handler_count; i++) {
        wb_handler handler = handler_at(module, i);
        handler.type = name_of(l, handler.type);
        if (check_handler(l, &handler) != WB_OK)
            continue;
        l->set->entries =
            wb_realloc(l->set->entries, (l->set->count + 1) * sizeof *l->set->entries);
        l->set->entries[l->set->count++] =
            (wb_handler_entry){ handler.type, handler.one, handler.batch, l->path, l->set->module_count - 1 };
    }
}

static int compare_entries(const void *left, const void *right)
{
    return strcmp(((const wb_handler_entry *)left)->type, ((const wb_handler_entry *)right)->type);
}

static void finish(wb_handler_set *set)
{
    if (set->count)
        qsort(set->entries, set->count, sizeof *set->entries, compare_entries);
    set->types = wb_alloc((set->count + 1) * sizeof *set->types);
    for (size_t i = 0; i < set->count; i++)
        set->types[i] = set->entries[i].type;
    set->other = find_type(set, WB_EVERY_OTHER_TYPE);
}

int wb_handlers_load(wb_config *config, const wb_endpoint_config *endpoint, wb_handler_set *set,
                     wb_problems *problems)
{
    size_t errors_before = problems->error_count;
    memset(set, 0, sizeof *set);
    for (size_t i = 0; i < endpoint->handler_count; i++) {
        loading l = { config, endpoint, &endpoint->handlers[i], set, problems, NULL };
        l.path = trusted_path(&l);
        if (!l.path)
            continue;
        const wb_handler_module *module = NULL;
        if (open_module(&l, &module) != WB_OK || check_module(&l, module) != WB_OK)
            continue;
        add_module(&l, module);
        add_handlers(&l, module);
    }
    finish(set);
    return problems->error_count == errors_before ? WB_OK : WB_FATAL;
}

int wb_handlers_take(wb_config *config, const wb_endpoint_config *endpoint, const wb_handler_module *module,
                     const char *path, wb_conf_origin at, wb_handler_set *set, wb_problems *problems)
{
    const wb_handler_choice choice = { path, at };
    const loading l = { config, endpoint, &choice, set, problems, path };
    const size_t errors_before = problems->error_count;
    memset(set, 0, sizeof *set);
    add_module(&l, module);
    add_handlers(&l, module);
    finish(set);
    return problems->error_count == errors_before ? WB_OK : WB_FATAL;
}

/* Like strcmp, for a type that need not end with a NUL byte and may hold one. */
static int compare_type(const char *entry, const char *type, size_t size)
{
    size_t entry_size = strlen(entry);
    int order = memcmp(entry, type, entry_size < size ? entry_size : size);
    if (order != 0)
        return order;
    return entry_size == size ? 0 : entry_size < size ? -1 : 1;
}

const wb_handler_entry *wb_handlers_find(const wb_handler_set *set, const char *type, size_t size)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_type(set->entries[middle].type, type, size);
        if (order == 0)
            return &set->entries[middle] == set->other ? NULL : &set->entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void wb_handlers_free(wb_handler_set *set)
{
    free(set->entries);
    free(set->types);
    free(set->modules);
    memset(set, 0, sizeof *set);
}

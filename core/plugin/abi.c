/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/abi.h"

#include <stdio.h>
#include <string.h>
#include <waybill/sys/persistence.h>
#include <waybill/sys/transport.h>

#include "core/config/option.h"

#define END_OF(type, field) (offsetof(type, field) + sizeof(((const type *)0)->field))
#define REASON_SIZE 512

/* An operation: always needed (capabilities 0), or when one of these bits is set, or of batches. */
typedef struct {
    const char *name;
    size_t offset;
    uint64_t capabilities;
} operation;

#define ALWAYS 0
/* Of all but a plugin that remembers ids for others and can do nothing else. */
#define BATCHES (~WB_CAP_REMEMBER)
#define TRANSACTION (WB_CAP_MODE_SENDS_ATOMIC | WB_CAP_MODE_TRANSACTION_SCOPE)
#define SCOPE WB_CAP_MODE_TRANSACTION_SCOPE
#define T(field) #field, offsetof(wb_transport_ops, field)
#define P(field) #field, offsetof(wb_persistence_ops, field)

static const operation transport_operations[] = {
    { T(create), ALWAYS },      { T(destroy), ALWAYS },
    { T(install), ALWAYS },     { T(verify), ALWAYS },
    { T(open), ALWAYS },        { T(close), ALWAYS },
    { T(receive), ALWAYS },     { T(acknowledge), ALWAYS },
    { T(give_back), ALWAYS },   { T(send), ALWAYS },
    { T(interrupt), ALWAYS },   { T(begin), TRANSACTION },
    { T(commit), TRANSACTION }, { T(rollback), TRANSACTION },
    { T(native), SCOPE },       { T(shared_resource), SCOPE },
    { T(position_end), WB_CAP_POSITION },
    { NULL, 0, 0 },
};

static const operation persistence_operations[] = {
    { P(create), ALWAYS },          { P(destroy), ALWAYS },
    { P(schema), ALWAYS },          { P(install), ALWAYS },
    { P(verify), ALWAYS },          { P(open), ALWAYS },
    { P(close), ALWAYS },           { P(begin), BATCHES },
    { P(interface), BATCHES },      { P(check), BATCHES },
    { P(commit), BATCHES },         { P(rollback), BATCHES },
    { P(mark), WB_CAP_OUTBOX },     { P(pending), WB_CAP_OUTBOX },
    { P(sweep), WB_CAP_OUTBOX },    { P(clean_up), WB_CAP_OUTBOX | WB_CAP_REMEMBER },
    { P(join), WB_CAP_JOIN_TRANSPORT },
    { P(shared_resource), WB_CAP_JOIN_TRANSPORT },
    { P(delayed), WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT },
    { P(find), WB_CAP_CLAIM_WITH_COMMIT | WB_CAP_REMEMBER },
    { P(written), WB_CAP_WRITTEN },
    { P(positions), WB_CAP_POSITIONS }, { P(forget_positions), WB_CAP_POSITIONS },
    { P(forget), WB_CAP_FORGET },       { P(remember), WB_CAP_REMEMBER },
    { NULL, 0, 0 },
};

#define D(field) "delayed." #field, offsetof(wb_delayed_ops, field)

static const operation delayed_operations[] = {
    { D(initialize), ALWAYS }, { D(store), ALWAYS },
    { D(next), ALWAYS },       { D(fetch), ALWAYS },
    { D(remove), ALWAYS },     { D(increment_failure_count), ALWAYS },
    { D(release), ALWAYS },    { D(list), ALWAYS },
    { D(cancel), ALWAYS },     { D(reschedule), ALWAYS },
    { NULL, 0, 0 },
};

#define W(field) "written." #field, offsetof(wb_written_ops, field)

static const operation written_operations[] = {
    { W(is_installed), ALWAYS }, { W(fetch), ALWAYS },
    { W(settle), ALWAYS },       { W(write), ALWAYS },
    { W(claim), ALWAYS },        { NULL, 0, 0 },
};

const char *wb_plugin_kind_name(uint32_t kind)
{
    return kind == WB_PLUGIN_TRANSPORT     ? "transport"
           : kind == WB_PLUGIN_PERSISTENCE ? "persistence"
                                           : "unknown kind";
}

static int check_versions(const wb_plugin *plugin, char *reason)
{
    if (plugin->magic != WB_PLUGIN_MAGIC)
        (void)snprintf(reason, REASON_SIZE, "its descriptor is not one of a waybill plugin");
    else if (plugin->abi_major != WB_PLUGIN_ABI_MAJOR)
        (void)snprintf(reason, REASON_SIZE,
                       "it was built for ABI %u, this host offers ABI %u.%u; rebuild the plugin",
                       plugin->abi_major, WB_PLUGIN_ABI_MAJOR, WB_PLUGIN_ABI_MINOR);
    else if (plugin->abi_minor_needed > WB_PLUGIN_ABI_MINOR)
        (void)snprintf(reason, REASON_SIZE,
                       "it needs ABI %u.%u, this host offers ABI %u.%u; use a newer waybill",
                       plugin->abi_major, plugin->abi_minor_needed, WB_PLUGIN_ABI_MAJOR,
                       WB_PLUGIN_ABI_MINOR);
    else if (plugin->struct_size < END_OF(wb_plugin, client_library))
        (void)snprintf(reason, REASON_SIZE,
                       "its descriptor has %zu bytes, ABI 1.0 has %zu; rebuild the plugin",
                       plugin->struct_size, END_OF(wb_plugin, client_library));
    else
        return WB_OK;
    return WB_FATAL;
}

static int check_identity(const wb_plugin *plugin, uint32_t kind, const char *name, char *reason)
{
    if (plugin->kind != kind)
        (void)snprintf(reason, REASON_SIZE, "it is a %s plugin, a %s was wanted",
                       wb_plugin_kind_name(plugin->kind), wb_plugin_kind_name(kind));
    else if (!plugin->name || strcmp(plugin->name, name) != 0)
        (void)snprintf(reason, REASON_SIZE, "it calls itself \"%.64s\", its file \"%s\"",
                       plugin->name ? plugin->name : "", name);
    else if (!plugin->version || !plugin->summary)
        (void)snprintf(reason, REASON_SIZE, "its descriptor has no version or summary");
    else
        return WB_OK;
    return WB_FATAL;
}

static int has_operation(const void *ops, size_t offset)
{
    size_t struct_size;
    void (*function)(void) = NULL;
    memcpy(&struct_size, ops, sizeof struct_size);
    if (struct_size >= offset + sizeof function)
        memcpy(&function, (const char *)ops + offset, sizeof function);
    return function != NULL;
}

static int is_always_needed(const operation *wanted)
{
    return wanted->capabilities == ALWAYS || wanted->capabilities == BATCHES;
}

static int is_needed(const wb_plugin *plugin, const operation *wanted)
{
    if (wanted->capabilities == BATCHES)
        return plugin->capabilities != WB_CAP_REMEMBER;
    return is_always_needed(wanted) || (plugin->capabilities & wanted->capabilities);
}

static int check_table(const wb_plugin *plugin, const void *ops, const operation *wanted, char *reason)
{
    for (; wanted->name; wanted++) {
        if (!is_needed(plugin, wanted) || has_operation(ops, wanted->offset))
            continue;
        (void)snprintf(reason, REASON_SIZE, "%s its operation \"%s\" is missing",
                       is_always_needed(wanted) ? "it is incomplete:" : "it promises a capability, but",
                       wanted->name);
        return WB_FATAL;
    }
    return WB_OK;
}

static int check_delayed(const wb_plugin *plugin, const wb_delayed_ops *ops, char *reason)
{
    int r = check_table(plugin, ops, delayed_operations, reason);
    if (r == WB_OK && !WB_HAS(ops, wb_delayed_ops, begin_fetch) != !WB_HAS(ops, wb_delayed_ops, end_fetch)) {
        (void)snprintf(reason, REASON_SIZE,
                       "it is incomplete: of \"delayed.begin_fetch\" and \"delayed.end_fetch\" one is missing");
        return WB_FATAL;
    }
    return r;
}

static int check_operations(const wb_plugin *plugin, char *reason)
{
    const int is_transport = plugin->kind == WB_PLUGIN_TRANSPORT;
    if (!plugin->ops) {
        (void)snprintf(reason, REASON_SIZE, "its descriptor has no table of operations");
        return WB_FATAL;
    }
    int r = check_table(plugin, plugin->ops, is_transport ? transport_operations : persistence_operations, reason);
    if (r == WB_OK && !is_transport && (plugin->capabilities & WB_CAP_DELAY_STORE))
        r = check_delayed(plugin, ((const wb_persistence_ops *)plugin->ops)->delayed, reason);
    if (r == WB_OK && !is_transport && (plugin->capabilities & WB_CAP_WRITTEN))
        r = check_table(plugin, ((const wb_persistence_ops *)plugin->ops)->written, written_operations, reason);
    return r;
}

static int check_modes(const wb_plugin *plugin, char *reason)
{
    const uint64_t modes = WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_SENDS_ATOMIC |
                           WB_CAP_MODE_TRANSACTION_SCOPE;
    if (plugin->kind != WB_PLUGIN_TRANSPORT || (plugin->capabilities & modes))
        return WB_OK;
    (void)snprintf(reason, REASON_SIZE, "it declares no transaction mode");
    return WB_FATAL;
}

static const char *option_fault(const wb_plugin *plugin, const wb_option *option)
{
    size_t field = wb_option_field_size(option->type);
    if (!option->name || !*option->name)
        return "has no name";
    if (strcmp(option->name, "plugin") == 0)
        return "has a reserved name";
    if (!field)
        return "has a type this host does not know; use a newer waybill";
    if (option->offset > plugin->config_size || plugin->config_size - option->offset < field)
        return "lies outside of the configuration struct";
    if (option->offset % (field < _Alignof(int64_t) ? field : _Alignof(int64_t)) != 0)
        return "is not aligned in the configuration struct";
    if (option->type == WB_OPTION_CHOICE && (!option->choices || !option->choices[0]))
        return "has no choices";
    return NULL;
}

static int check_options(const wb_plugin *plugin, char *reason)
{
    if (plugin->option_count &&
        (!plugin->options || plugin->option_stride < END_OF(wb_option, help))) {
        (void)snprintf(reason, REASON_SIZE, "its option table is malformed");
        return WB_FATAL;
    }
    for (size_t i = 0; i < plugin->option_count; i++) {
        wb_option option = wb_option_at(plugin->options, plugin->option_stride, i);
        const char *fault = option_fault(plugin, &option);
        if (fault) {
            (void)snprintf(reason, REASON_SIZE, "its option \"%.64s\" %s",
                           option.name ? option.name : "", fault);
            return WB_FATAL;
        }
    }
    return WB_OK;
}

int wb_plugin_check(const wb_plugin *plugin, uint32_t kind, const char *name, const char *path,
                    wb_error *error)
{
    char reason[REASON_SIZE] = "its entry point returns no descriptor";

    if (plugin && check_versions(plugin, reason) == WB_OK &&
        check_identity(plugin, kind, name, reason) == WB_OK &&
        check_operations(plugin, reason) == WB_OK && check_modes(plugin, reason) == WB_OK &&
        check_options(plugin, reason) == WB_OK)
        return WB_OK;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0, "plugin \"%s\" is refused: %s", path,
                        reason);
}

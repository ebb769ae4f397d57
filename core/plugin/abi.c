/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/abi.h"

#include <stdio.h>
#include <string.h>
#include <waybill/sys/observer.h>
#include <waybill/sys/persistence.h>
#include <waybill/sys/transport.h>

#include "core/config/option.h"
#include "core/plugin/capability.h"

#define END_OF(type, field) (offsetof(type, field) + sizeof(((const type *)0)->field))
#define REASON_SIZE 512
#define NAMES_SIZE 256
#define NAME_SIZE 40

/* An operation: always needed (capabilities 0), or of batches, or there if, and only if, one of these
 * bits is set. */
typedef struct {
    const char *name;
    size_t offset;
    uint64_t capabilities;
} operation;

#define ALWAYS 0
/* It has other uses: no capability, and may be there without those that need it. */
#define EVEN_WITHOUT (UINT64_C(1) << 63)
/* Of all but a plugin that remembers ids for others and can do nothing else. */
#define BATCHES (~WB_CAP_REMEMBER)
#define MODES (WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | TRANSACTION)
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
    { T(native), SCOPE },       { T(shared_resource), SCOPE | EVEN_WITHOUT },
    { T(position_end), WB_CAP_POSITION },
    { T(depth), WB_CAP_UNINSTALL },         { T(uninstall), WB_CAP_UNINSTALL },
    { T(unsubscribe), WB_CAP_UNSUBSCRIBE },
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
    { P(shared_resource), WB_CAP_JOIN_TRANSPORT | EVEN_WITHOUT }, /* a store of ids says where it is, too */
    { P(delayed), WB_CAP_DELAY_STORE },
    { P(find), WB_CAP_CLAIM_WITH_COMMIT | WB_CAP_REMEMBER },
    { P(written), WB_CAP_WRITTEN },
    { P(positions), WB_CAP_POSITIONS }, { P(forget_positions), WB_CAP_POSITIONS },
    { P(forget), WB_CAP_FORGET },       { P(remember), WB_CAP_REMEMBER },
    { P(uninstall), WB_CAP_REMOVE_TABLES }, { P(rename), WB_CAP_REMOVE_TABLES },
    { P(note_subscriptions), WB_CAP_SUBSCRIPTIONS }, { P(subscriptions), WB_CAP_SUBSCRIPTIONS },
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

#define O(field) #field, offsetof(wb_observer_ops, field)

static const operation observer_operations[] = {
    { O(create), ALWAYS },                { O(destroy), ALWAYS },
    { O(start), ALWAYS },                 { O(stop), ALWAYS },
    { O(started), WB_CAP_SEES_STARTED },  { O(handled), WB_CAP_SEES_HANDLED },
    { O(failed), WB_CAP_SEES_FAILED },    { O(sent), WB_CAP_SEES_SENT },
    { NULL, 0, 0 },
};

/* Every kind there is: what it can, and what it is made of. */
static const struct {
    uint32_t kind;
    const char *name;
    uint64_t capabilities;
    const operation *operations;
} kinds[] = {
    { WB_PLUGIN_TRANSPORT, "transport", WB_CAPS_OF_TRANSPORTS, transport_operations },
    { WB_PLUGIN_PERSISTENCE, "persistence", WB_CAPS_OF_PERSISTENCES, persistence_operations },
    { WB_PLUGIN_OBSERVER, "observer", WB_CAPS_OF_OBSERVERS, observer_operations },
};

#define KINDS (sizeof kinds / sizeof kinds[0])

/* KINDS: none of them. */
static size_t find_kind(uint32_t kind)
{
    size_t at = 0;
    while (at < KINDS && kinds[at].kind != kind)
        at++;
    return at;
}

/* What only adds to another capability. */
static const struct {
    uint64_t capability;
    uint64_t needs;
} additions[] = {
    { WB_CAP_DELAY_WITH_COMMIT, WB_CAP_DELAY_STORE },
    { WB_CAP_CLAIM_WITH_COMMIT, WB_CAP_OUTBOX },
    { WB_CAP_WRITTEN, WB_CAP_OUTBOX },
    { WB_CAP_POSITIONS, WB_CAP_OUTBOX },
    { WB_CAP_FORGET, WB_CAP_OUTBOX },
};

const char *wb_plugin_kind_name(uint32_t kind)
{
    const size_t at = find_kind(kind);
    return at < KINDS ? kinds[at].name : "unknown kind";
}

static const char *article(uint32_t kind)
{
    return kind == WB_PLUGIN_OBSERVER ? "an" : "a";
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
    if (find_kind(plugin->kind) == KINDS)
        (void)snprintf(reason, REASON_SIZE, "it is of a kind this host does not know (%u); use a newer waybill",
                       plugin->kind);
    else if (kind != WB_PLUGIN_ANY_KIND && plugin->kind != kind)
        (void)snprintf(reason, REASON_SIZE, "it is %s %s plugin, %s %s was wanted", article(plugin->kind),
                       wb_plugin_kind_name(plugin->kind), article(kind), wb_plugin_kind_name(kind));
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
        return wb_capabilities_known(plugin->capabilities) != WB_CAP_REMEMBER;
    return is_always_needed(wanted) || (plugin->capabilities & wanted->capabilities & ~EVEN_WITHOUT);
}

/* A later capability may have an operation of ours. */
static int is_unused(const wb_plugin *plugin, const operation *wanted)
{
    return plugin->capabilities == wb_capabilities_known(plugin->capabilities) && !is_always_needed(wanted) && !(wanted->capabilities & EVEN_WITHOUT) &&
           !(plugin->capabilities & wanted->capabilities);
}

static void say_missing(const wb_plugin *plugin, const operation *wanted, char *reason)
{
    char names[NAMES_SIZE];
    if (is_always_needed(wanted))
        (void)snprintf(reason, REASON_SIZE, "it is incomplete: its operation \"%s\" is missing", wanted->name);
    else
        (void)snprintf(reason, REASON_SIZE, "it declares \"%s\", but its operation \"%s\" is missing",
                       wb_capabilities_text(plugin->capabilities & wanted->capabilities, "\" and \"", names,
                                            sizeof names),
                       wanted->name);
}

static void say_unused(const operation *wanted, char *reason)
{
    char names[NAMES_SIZE];
    (void)snprintf(reason, REASON_SIZE, "it has the operation \"%s\", but does not declare \"%s\"", wanted->name,
                   wb_capabilities_text(wanted->capabilities, "\" or \"", names, sizeof names));
}

/* A capability and its operations go together: whoever forgot one of the two would look for it long. */
static int check_table(const wb_plugin *plugin, const void *ops, const operation *wanted, char *reason)
{
    for (; wanted->name; wanted++) {
        const int is_there = has_operation(ops, wanted->offset);
        if (!is_there && is_needed(plugin, wanted))
            say_missing(plugin, wanted, reason);
        else if (is_there && is_unused(plugin, wanted))
            say_unused(wanted, reason);
        else
            continue;
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
    if (!plugin->ops) {
        (void)snprintf(reason, REASON_SIZE, "its descriptor has no table of operations");
        return WB_FATAL;
    }
    int r = check_table(plugin, plugin->ops, kinds[find_kind(plugin->kind)].operations, reason);
    if (r == WB_OK && (plugin->capabilities & WB_CAP_DELAY_STORE))
        r = check_delayed(plugin, ((const wb_persistence_ops *)plugin->ops)->delayed, reason);
    if (r == WB_OK && (plugin->capabilities & WB_CAP_WRITTEN))
        r = check_table(plugin, ((const wb_persistence_ops *)plugin->ops)->written, written_operations, reason);
    return r;
}

/* What another kind can. */
static int check_kind_of_capabilities(const wb_plugin *plugin, char *reason)
{
    char names[NAMES_SIZE];
    const uint64_t foreign =
        wb_capabilities_known(plugin->capabilities) & ~kinds[find_kind(plugin->kind)].capabilities;
    if (!foreign)
        return WB_OK;
    (void)snprintf(reason, REASON_SIZE, "it is %s %s plugin, but declares \"%s\"", article(plugin->kind),
                   wb_plugin_kind_name(plugin->kind),
                   wb_capabilities_text(foreign, "\" and \"", names, sizeof names));
    return WB_FATAL;
}

static int check_additions(const wb_plugin *plugin, char *reason)
{
    char one[NAME_SIZE], other[NAME_SIZE];
    for (size_t i = 0; i < sizeof additions / sizeof additions[0]; i++) {
        if (!(plugin->capabilities & additions[i].capability) || (plugin->capabilities & additions[i].needs))
            continue;
        (void)snprintf(reason, REASON_SIZE, "it declares \"%s\", which is nothing without \"%s\"",
                       wb_capabilities_text(additions[i].capability, "", one, sizeof one),
                       wb_capabilities_text(additions[i].needs, "", other, sizeof other));
        return WB_FATAL;
    }
    return WB_OK;
}

static int check_capabilities(const wb_plugin *plugin, char *reason)
{
    if (plugin->kind == WB_PLUGIN_OBSERVER && !(plugin->capabilities & WB_CAPS_OF_OBSERVERS)) {
        (void)snprintf(reason, REASON_SIZE, "it declares nothing that it sees");
        return WB_FATAL;
    }
    if (plugin->kind == WB_PLUGIN_TRANSPORT && !(plugin->capabilities & MODES)) {
        (void)snprintf(reason, REASON_SIZE, "it declares no transaction mode");
        return WB_FATAL;
    }
    int r = check_kind_of_capabilities(plugin, reason);
    return r == WB_OK ? check_additions(plugin, reason) : r;
}

static const char *place_fault(const wb_plugin *plugin, const wb_option *option)
{
    const size_t size = wb_option_field_size(option->type);
    if (option->offset > plugin->config_size || plugin->config_size - option->offset < size)
        return "lies outside of the configuration struct";
    if (option->offset % (size < _Alignof(int64_t) ? size : _Alignof(int64_t)) != 0)
        return "is not aligned in the configuration struct";
    return NULL;
}

#define OPTION_FLAGS (WB_OPTION_REQUIRED | WB_OPTION_SECRET | WB_OPTION_MAYBE_SECRET)

static const char *option_fault(const wb_plugin *plugin, const wb_option *option)
{
    if (strcmp(option->name, "plugin") == 0)
        return "has a reserved name";
    if (!wb_option_field_size(option->type))
        return "has a type this host does not know; use a newer waybill";
    if (option->flags & ~OPTION_FLAGS)
        return "has a flag this host does not know; use a newer waybill";
    if (option->type == WB_OPTION_CHOICE && (!option->choices || !option->choices[0]))
        return "has no choices";
    if (option->minimum > option->maximum)
        return "has a range from more to less";
    return place_fault(plugin, option);
}

/* Two that have one name, or of which the second fills what the first has filled. */
static int check_against_others(const wb_plugin *plugin, size_t index, const wb_option *option, char *reason)
{
    const size_t end = option->offset + wb_option_field_size(option->type);
    for (size_t i = 0; i < index; i++) {
        wb_option other = wb_option_at(plugin->options, plugin->option_stride, i);
        if (strcmp(other.name, option->name) == 0)
            (void)snprintf(reason, REASON_SIZE, "its options %zu and %zu are both called \"%.64s\"", i + 1, index + 1,
                           option->name);
        else if (option->offset < other.offset + wb_option_field_size(other.type) && other.offset < end)
            (void)snprintf(reason, REASON_SIZE, "its options \"%.64s\" and \"%.64s\" overlap in the configuration struct",
                           other.name, option->name);
        else
            continue;
        return WB_FATAL;
    }
    return WB_OK;
}

static int check_option(const wb_plugin *plugin, size_t index, char *reason)
{
    wb_option option = wb_option_at(plugin->options, plugin->option_stride, index);
    char wrong[REASON_SIZE - 64];
    if (!option.name || !*option.name) {
        (void)snprintf(reason, REASON_SIZE, "its option table is malformed: option %zu of %zu has no name", index + 1,
                       plugin->option_count);
        return WB_FATAL;
    }
    const char *fault = option_fault(plugin, &option);
    if (fault) {
        (void)snprintf(reason, REASON_SIZE, "its option \"%.64s\" %s", option.name, fault);
        return WB_FATAL;
    }
    if (wb_option_check_default(&option, wrong, sizeof wrong) != WB_OK) {
        (void)snprintf(reason, REASON_SIZE, "its own default is wrong: %s", wrong);
        return WB_FATAL;
    }
    return check_against_others(plugin, index, &option, reason);
}

static int check_options(const wb_plugin *plugin, char *reason)
{
    int r = WB_FATAL;
    if (!plugin->option_count)
        return WB_OK;
    if (!plugin->options)
        (void)snprintf(reason, REASON_SIZE, "its option table is malformed: it has %zu options by its count, but no table",
                       plugin->option_count);
    else if (plugin->option_stride < END_OF(wb_option, help))
        (void)snprintf(reason, REASON_SIZE,
                       "its option table is malformed: its options are %zu bytes apart, one of ABI 1.0 has %zu; "
                       "option_stride is sizeof(wb_option)",
                       plugin->option_stride, END_OF(wb_option, help));
    else
        r = WB_OK;
    for (size_t i = 0; r == WB_OK && i < plugin->option_count; i++)
        r = check_option(plugin, i, reason);
    return r;
}

int wb_plugin_check(const wb_plugin *plugin, uint32_t kind, const char *name, const char *path,
                    wb_error *error)
{
    char reason[REASON_SIZE] = "its entry point returns no descriptor";

    if (plugin && check_versions(plugin, reason) == WB_OK &&
        check_identity(plugin, kind, name, reason) == WB_OK &&
        check_capabilities(plugin, reason) == WB_OK && check_operations(plugin, reason) == WB_OK &&
        check_options(plugin, reason) == WB_OK)
        return WB_OK;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0, "plugin \"%s\" is refused: %s", path,
                        reason);
}

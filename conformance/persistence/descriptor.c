/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: what the descriptor says of itself, and what an instance does before
 * there is a connection.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "conformance/persistence/persistence.h"
#include "conformance/wires.h"
#include "core/plugin/abi.h"

static void is_well_formed(wb_kit *kit)
{
    wb_error error = { 0 };
    const wb_plugin *plugin = kit->plugin;
    int r = wb_plugin_check(plugin, WB_PLUGIN_PERSISTENCE, plugin->name,
                            kit->endpoint->persistence_path, &error);
    wb_kit_check(kit, r == WB_OK, "%s", error.text);
    wb_kit_check(kit, plugin->version && *plugin->version, "it has no version");
    wb_kit_check(kit, plugin->summary && *plugin->summary && !strchr(plugin->summary, '\n'),
                 "its summary is not one line");
}

/* In transaction_scope there is nothing but join(); in any other mode the outbox; and a store of ids serves the
 * outbox of another. */
static void does_something(wb_kit *kit)
{
    wb_kit_check(kit, (kit->plugin->capabilities & (WB_CAP_OUTBOX | WB_CAP_JOIN_TRANSPORT | WB_CAP_REMEMBER)) != 0,
                 "it declares neither an outbox, nor that it joins transports, nor that it remembers ids");
}

static void declares_nothing_of_transports(wb_kit *kit)
{
    const uint64_t transports = WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_SENDS_ATOMIC |
                                WB_CAP_MODE_TRANSACTION_SCOPE | WB_CAP_DELAY | WB_CAP_DELIVERY_COUNT |
                                WB_CAP_ORDER_PER_KEY | WB_CAP_PUBLISH |
                                WB_CAP_HEADER_ORDER | WB_CAP_EXPIRY | WB_CAP_UNINSTALL | WB_CAP_UNSUBSCRIBE | WB_CAP_QUEUES;
    wb_kit_check(kit, (kit->plugin->capabilities & transports) == 0,
                 "it declares capabilities of a transport");
}

/* ---- options --------------------------------------------------------------------------- */

static int is_option_name(const char *name)
{
    if (!islower((unsigned char)*name))
        return 0;
    for (; *name; name++)
        if (!islower((unsigned char)*name) && !isdigit((unsigned char)*name) && *name != '_')
            return 0;
    return 1;
}

static int has_range(const wb_option *option)
{
    return option->type == WB_OPTION_INTEGER || option->type == WB_OPTION_DURATION ||
           option->type == WB_OPTION_SIZE;
}

static void check_option(wb_kit *kit, const wb_option *option)
{
    const char *name = option->name;
    wb_kit_check(kit, is_option_name(name), "option \"%s\": names are of a-z, 0-9 and _", name);
    wb_kit_check(kit, option->summary && *option->summary && !strchr(option->summary, '\n'),
                 "option \"%s\" has no summary of one line", name);
    wb_kit_check(kit, option->since && isdigit((unsigned char)*option->since),
                 "option \"%s\" does not say since when it is there", name);
    wb_kit_check(kit, !(option->flags & WB_OPTION_REQUIRED) || !option->default_text,
                 "option \"%s\" is required and has a default", name);
    wb_kit_check(kit, !(option->flags & WB_OPTION_SECRET) || option->type == WB_OPTION_STRING,
                 "option \"%s\" is secret and no string", name);
    wb_kit_check(kit, (option->flags & WB_OPTION_SECRET) || !(option->flags & WB_OPTION_MAYBE_SECRET),
                 "option \"%s\" may be secret and is not redacted", name);
    wb_kit_check(kit, option->minimum <= option->maximum, "option \"%s\" has an empty range", name);
    wb_kit_check(kit, has_range(option) || (!option->minimum && !option->maximum),
                 "option \"%s\" has a range and no number", name);
}

static void options_are_sane(wb_kit *kit)
{
    const wb_plugin *plugin = kit->plugin;
    for (size_t i = 0; i < plugin->option_count; i++) {
        wb_option option = wb_option_at(plugin->options, plugin->option_stride, i);
        check_option(kit, &option);
        for (size_t j = 0; j < i; j++) {
            wb_option other = wb_option_at(plugin->options, plugin->option_stride, j);
            wb_kit_check(kit, strcmp(option.name, other.name) != 0 && option.offset != other.offset,
                         "options \"%s\" and \"%s\" share a name or a field", other.name, option.name);
        }
    }
}

/* ---- instances ------------------------------------------------------------------------- */

static void make_and_destroy(wb_kit *kit, const char *name)
{
    wb_store store;
    wb_error error = { 0 };
    int r = wb_store_try(kit, &store, name, wb_store_delays(kit), &error);
    if (r == WB_OK && store.instance)
        store.ops->destroy(store.instance);
    else if (!wb_store_refuses(kit, name, r, &error))
        wb_kit_check(kit, 0, "could not make an instance: %s: %s", wb_result_name(r), error.text);
}

static void create_makes_no_connection(wb_kit *kit)
{
    wb_wires before;
    wb_store store;
    int wire;
    wb_wires_remember(&before);
    WB_KIT_REQUIRE(kit, wb_store_create(kit, &store, "conformance") != NULL, "nothing to look at");
    wb_kit_check(kit, wb_wires_find(&before, &wire, 1) == 0, "create() has connected to a server");
    store.ops->destroy(store.instance);
}

/* Endpoint names are 1 to 200 printable characters; tables have other limits, and files. */
static void any_name_will_do(wb_kit *kit)
{
    char name[201];
    make_and_destroy(kit, "x");
    make_and_destroy(kit, "Sales.Orders-2/eu:west@1");
    make_and_destroy(kit, "%s$1;drop(table)--*?[]{}<>|&~^!=+,#");
    memset(name, 'n', 200);
    name[200] = '\0';
    make_and_destroy(kit, name);
}

static void shared_resource_keeps_its_buffer(wb_kit *kit)
{
    const wb_persistence_ops *ops = kit->plugin->ops;
    const void *config = kit->endpoint->persistence_config;
    char first[4096], second[4096], narrow[8];

    if (!WB_HAS(ops, wb_persistence_ops, shared_resource)) {
        wb_kit_skip(kit, "%s has no shared_resource()", kit->plugin->name);
        return;
    }
    memset(narrow, 'x', sizeof narrow);
    if (ops->shared_resource(config, first, sizeof first) != WB_OK)
        return; /* nothing that could be shared */
    WB_KIT_REQUIRE(kit, ops->shared_resource(config, second, sizeof second) == WB_OK &&
                            strcmp(first, second) == 0,
                   "it says something else the second time");
    wb_kit_check(kit, *first, "it names nothing");
    wb_kit_check(kit, strlen(first) < 2 || ops->shared_resource(config, narrow, 2) != WB_OK,
                 "it says that \"%s\" fits into 2 bytes", first);
    wb_kit_check(kit, memcmp(narrow + 2, "xxxxxx", 6) == 0, "it writes beyond its buffer");
}

static const wb_kit_case cases[] = {
    { "the descriptor is well-formed and has the operations its capabilities need", 0, is_well_formed },
    { "it declares something a persistence can do", 0, does_something },
    { "it declares nothing that is a transport's", 0, declares_nothing_of_transports },
    { "the options are named, described and have sane defaults", 0, options_are_sane },
    { "create() connects to nothing", 0, create_makes_no_connection },
    { "create() takes every endpoint name, or says which it does not", 0, any_name_will_do },
    { "shared_resource() is stable and keeps within its buffer", 0, shared_resource_keeps_its_buffer },
};
const wb_kit_group wb_cases_descriptor = WB_KIT_GROUP(cases);

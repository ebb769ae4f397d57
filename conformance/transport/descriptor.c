/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptor: what can be said of a transport without an instance.
 */
#include "config.h"

#include <string.h>

#include "conformance/transport/steps.h"
#include "core/config/option.h"
#include "core/plugin/abi.h"

#define TRANSPORT_CAPABILITIES                                                                     \
    (WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_SENDS_ATOMIC |                      \
     WB_CAP_MODE_TRANSACTION_SCOPE | WB_CAP_DELAY | WB_CAP_DELIVERY_COUNT | WB_CAP_ORDER_PER_KEY | \
     WB_CAP_PUBLISH | WB_CAP_HEADER_ORDER | WB_CAP_EXPIRY | WB_CAP_POSITION | WB_CAP_UNINSTALL |   \
     WB_CAP_UNSUBSCRIBE | WB_CAP_QUEUES)
#define RESOURCE_SIZE 4096

static void keeps_the_rules(wb_kit *kit)
{
    const wb_plugin *plugin = kit->plugin;
    wb_error error = { 0 };
    int result = wb_plugin_check(plugin, WB_PLUGIN_TRANSPORT, plugin->name,
                                 kit->endpoint->transport_path, &error);
    wb_tk_is_ok(kit, result, &error, "check the descriptor");
    wb_kit_check(kit, plugin->version[0] && plugin->summary[0], "version or summary is empty");
    wb_kit_check(kit, strchr(plugin->summary, '\n') == NULL, "the summary is no single line");
}

static void declares_what_a_transport_may(wb_kit *kit)
{
    uint64_t foreign = kit->plugin->capabilities & ~TRANSPORT_CAPABILITIES;
    wb_kit_check(kit, foreign == 0, "bits 0x%llx are not a transport's",
                 (unsigned long long)foreign);
}

static void has_its_operations(wb_kit *kit)
{
    const wb_transport_ops *ops = kit->plugin->ops;
    uint64_t capabilities = kit->plugin->capabilities;
    wb_kit_check(kit, ops->struct_size % sizeof(void *) == 0, "a table of %zu bytes",
                 ops->struct_size);
    if (capabilities & (WB_CAP_MODE_SENDS_ATOMIC | WB_CAP_MODE_TRANSACTION_SCOPE))
        wb_kit_check(kit, WB_HAS(ops, wb_transport_ops, begin) &&
                              WB_HAS(ops, wb_transport_ops, commit) &&
                              WB_HAS(ops, wb_transport_ops, rollback),
                     "a transaction is declared without begin, commit or rollback");
    if (capabilities & WB_CAP_MODE_TRANSACTION_SCOPE)
        wb_kit_check(kit, WB_HAS(ops, wb_transport_ops, native) &&
                              WB_HAS(ops, wb_transport_ops, shared_resource),
                     "transaction_scope is declared without native or shared_resource");
}

/* ---- options --------------------------------------------------------------------------- */

static wb_option option_at(const wb_kit *kit, size_t at)
{
    return wb_option_at(kit->plugin->options, kit->plugin->option_stride, at);
}

static void describes_its_options(wb_kit *kit)
{
    for (size_t i = 0; i < kit->plugin->option_count; i++) {
        wb_option option = option_at(kit, i);
        wb_kit_check(kit, option.summary && option.summary[0] && !strchr(option.summary, '\n'),
                     "option \"%s\" has no summary of one line", option.name);
        wb_kit_check(kit, option.since && option.since[0],
                     "option \"%s\" does not say since when it exists", option.name);
        wb_kit_check(kit, option.name[strspn(option.name, "abcdefghijklmnopqrstuvwxyz0123456789_")]
                              == '\0',
                     "option \"%s\" is not of a-z, 0-9 and _", option.name);
        for (size_t k = 0; k < i; k++)
            wb_kit_check(kit, strcmp(option.name, option_at(kit, k).name) != 0,
                         "option \"%s\" is there twice", option.name);
    }
}

static void has_sane_ranges(wb_kit *kit)
{
    for (size_t i = 0; i < kit->plugin->option_count; i++) {
        wb_option option = option_at(kit, i);
        int is_number = option.type == WB_OPTION_INTEGER || option.type == WB_OPTION_DURATION ||
                        option.type == WB_OPTION_SIZE;
        wb_kit_check(kit, option.minimum <= option.maximum, "option \"%s\": minimum over maximum",
                     option.name);
        wb_kit_check(kit, is_number || (option.minimum == 0 && option.maximum == 0),
                     "option \"%s\" has a range and is no number", option.name);
        wb_kit_check(kit, !(option.flags & WB_OPTION_REQUIRED) || !option.default_text,
                     "option \"%s\" is required and has a default", option.name);
        wb_kit_check(kit, !(option.flags & WB_OPTION_MAYBE_SECRET) ||
                              (option.flags & WB_OPTION_SECRET),
                     "option \"%s\" may be secret without being a secret", option.name);
    }
}

static void has_distinct_choices(wb_kit *kit)
{
    for (size_t i = 0; i < kit->plugin->option_count; i++) {
        wb_option option = option_at(kit, i);
        if (option.type != WB_OPTION_CHOICE)
            continue;
        for (size_t k = 0; option.choices[k]; k++)
            for (size_t j = 0; j < k; j++)
                wb_kit_check(kit, strcmp(option.choices[j], option.choices[k]) != 0,
                             "option \"%s\" offers \"%s\" twice", option.name, option.choices[k]);
    }
}

/* One option at a time, as if nothing were configured: what is required stays out. */
static void has_defaults_that_parse(wb_kit *kit)
{
    wb_arena arena;
    wb_secrets secrets = { 0 };
    wb_problems problems = { 0 };
    wb_option_scope scope = { &arena, &secrets, &problems, "", NULL };
    wb_arena_init(&arena, 4096);
    for (size_t i = 0; i < kit->plugin->option_count; i++) {
        wb_option option = option_at(kit, i);
        if (option.flags & WB_OPTION_REQUIRED)
            continue;
        int64_t field[2] = { 0 };
        option.offset = 0;
        int result = wb_options_parse(&scope, &option, 1, sizeof option, NULL,
                                      (wb_conf_origin){ 0 }, field, NULL);
        wb_kit_check(kit, result == WB_OK, "%s",
                     problems.count ? problems.items[problems.count - 1].text : option.name);
    }
    wb_problems_free(&problems);
    wb_secrets_wipe(&secrets);
    wb_arena_free(&arena);
}

/* ---- the shared resource --------------------------------------------------------------- */

static void names_its_resource(wb_kit *kit)
{
    const wb_transport_ops *ops = kit->plugin->ops;
    const void *config = kit->endpoint->transport_config;
    char first[RESOURCE_SIZE] = "";
    char second[RESOURCE_SIZE] = "";
    char none[1] = "";
    WB_KIT_REQUIRE(kit, ops->shared_resource(config, first, sizeof first) == WB_OK &&
                            ops->shared_resource(config, second, sizeof second) == WB_OK,
                   "there is nothing to share");
    wb_kit_check(kit, first[0] && strcmp(first, second) == 0, "\"%s\", then \"%s\"", first, second);
    wb_kit_check(kit, ops->shared_resource(config, none, 0) != WB_OK,
                 "a buffer of no bytes was large enough");
}

const wb_kit_case wb_tk_descriptor_cases[] = {
    { "the descriptor keeps the rules of the ABI", 0, keeps_the_rules },
    { "only capabilities of a transport are declared", 0, declares_what_a_transport_may },
    { "what is declared has its operations", 0, has_its_operations },
    { "options are described, each once", 0, describes_its_options },
    { "ranges and flags of options make sense", 0, has_sane_ranges },
    { "choices of an option are distinct", 0, has_distinct_choices },
    { "defaults of options parse and lie in their ranges", 0, has_defaults_that_parse },
    { "the shared resource is always the same", WB_CAP_MODE_TRANSACTION_SCOPE, names_its_resource },
};
WB_TK_CASES(descriptor);

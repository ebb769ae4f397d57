/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/json_text.h"
#include "core/base/printable.h"
#include "core/cli/cli.h"
#include "core/cli/describe.h"
#include "core/plugin/abi.h"
#include "core/plugin/capability.h"
#include "core/plugin/loader.h"

#define CAPABILITIES_SIZE 256

#define DESCRIBE CLI_LONG_OPTION(1)

static const cli_option options[] = {
    { DESCRIBE, "describe", NULL, "show the options of each plugin, or of those called NAME" },
    { 'c', "config", "FILE", "look into this file's plugin_path as well" },
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

static void print_plugin(const wb_plugin *plugin, const char *path, int describe)
{
    char capabilities[CAPABILITIES_SIZE];
    (void)printf("%-12s %-10s %-8s %s\n", wb_plugin_kind_name(plugin->kind), plugin->name,
                 plugin->version, plugin->summary);
    (void)printf("  can: %s\n  from: %s\n",
                 wb_capabilities_text(plugin->capabilities, ", ", capabilities, sizeof capabilities),
                 path);
    if (describe)
        cli_describe_options(plugin->options, plugin->option_count, plugin->option_stride);
}

static json_t *plugin_json(const wb_plugin *plugin, const char *path, int describe)
{
    json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "kind",
                               wb_plugin_kind_name(plugin->kind), "name", wb_json_text(plugin->name), "version",
                               wb_json_text(plugin->version), "summary", wb_json_text(plugin->summary), "path",
                               wb_json_text(path), "capabilities", cli_capabilities_json(plugin->capabilities));
    if (describe)
        json_object_set_new(object, "options",
                            cli_options_json(plugin->options, plugin->option_count,
                                             plugin->option_stride));
    return object;
}

/* The reason may quote a file that somebody else put there. */
static void print_refused(const wb_plugin_file *file, const char *reason)
{
    (void)printf("%-12s %-10s refused: ", wb_plugin_kind_name(file->kind), file->name);
    wb_printable_print(stdout, reason, strlen(reason));
    (void)putchar('\n');
}

/* A refused plugin is part of the answer: that is what somebody who asks wants to know. */
static int show_file(const wb_config *config, const wb_plugin_file *file, int describe, json_t *array)
{
    const wb_plugin *plugin;
    const char *path;
    wb_error error;

    if (wb_plugin_load_file(file, &plugin, &path, &error) != WB_OK) {
        if (array)
            json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:o}", "kind",
                                                   wb_plugin_kind_name(file->kind), "name",
                                                   wb_json_text(file->name), "path",
                                                   wb_json_text(file->path), "refused",
                                                   wb_json_text(error.text)));
        else
            print_refused(file, error.text);
        return EX_CONFIG;
    }
    if (!wb_plugin_file_is_first(config, plugin->kind, file))
        return EX_OK; /* of the kind it turned out to be there is one before it */
    if (array)
        json_array_append_new(array, plugin_json(plugin, path, describe));
    else
        print_plugin(plugin, path, describe);
    return EX_OK;
}

static int show_files(const wb_config *config, const cli_values *values, json_t *array)
{
    const char *name = values->argument_count ? values->arguments[0] : NULL;
    wb_plugin_files files;
    int code = EX_OK;
    size_t shown = 0;

    wb_plugin_files_list(config, &files);
    for (size_t i = 0; i < files.count; i++) {
        if (name && strcmp(files.items[i].name, name) != 0)
            continue;
        int result = show_file(config, &files.items[i], values->value[DESCRIBE] != NULL, array);
        code = result != EX_OK ? result : code;
        shown++;
    }
    wb_plugin_files_free(&files);
    if (name && !shown)
        return cli_fail(EX_CONFIG, "there is no plugin \"%s\" (see: waybill plugins)", name);
    return code;
}

static int run(const cli_values *values)
{
    wb_problems problems = { 0 };
    wb_config *config = NULL;
    json_t *array = values->value['j'] ? json_array() : NULL;
    int code = EX_CONFIG;

    /* of the file only plugin_path matters here; `waybill check` reports the rest */
    if (values->value['c'] && !(config = wb_config_load(values->value['c'], &problems))) {
        wb_problems_print(&problems, stderr);
        json_decref(array);
        goto out;
    }
    code = show_files(config, values, array);
    if (array)
        cli_print_json(array);
out:
    wb_config_free(config);
    wb_problems_free(&problems);
    return code;
}

const cli_verb cli_verb_plugins = {
    .name = "plugins",
    .arguments = "[NAME]",
    .argument_max = 1,
    .summary = "list the plugins that are installed, what they can do, and their options",
    .options = options,
    .run = run,
};

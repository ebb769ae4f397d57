/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/cli/cli.h"
#include "core/cli/describe.h"

static const cli_option options[] = { CLI_OPTION_JSON, CLI_OPTION_END };

static int run(const cli_values *values)
{
    if (values->value['j']) {
        cli_print_json(json_pack("{s:s, s:s, s:s}", "version", PACKAGE_VERSION, "plugin_dir",
                                 WB_PLUGIN_DIR, "handler_dir", WB_HANDLER_DIR));
        return EX_OK;
    }
    (void)printf("waybill %s\nplugin ABI %u.%u, handler ABI %u.%u\nplugins in %s\nhandlers in %s\n",
                 PACKAGE_VERSION, WB_PLUGIN_ABI_MAJOR, WB_PLUGIN_ABI_MINOR, WB_HANDLER_ABI_MAJOR,
                 WB_HANDLER_ABI_MINOR, WB_PLUGIN_DIR, WB_HANDLER_DIR);
    return EX_OK;
}

const cli_verb cli_verb_version = {
    .name = "version",
    .summary = "print version, ABI and installed directories",
    .options = options,
    .run = run,
};

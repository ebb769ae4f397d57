/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages to a file and from one.
 */
#include "config.h"

#include <sysexits.h>

#include "core/cli/failed_file.h"
#include "core/cli/failures.h"

static cli_failed_table table_of(const cli_failures *f)
{
    const wb_endpoint_config *config = f->setup->config;
    return (cli_failed_table){ .persistence = f->setup->persistence_ops, .ops = f->ops, .session = f->session,
                               .pipeline = wb_endpoint_pipeline(f->endpoint),
                               .body_max = config->body_max, .compress_over = (size_t)config->failures.compress_over };
}

int cli_failures_export(cli_failures *f)
{
    const cli_failed_table table = table_of(f);
    const int code = cli_failures_find(f);
    return code == EX_OK ? cli_failed_export(&table, f->found, f->count, f->file) : code;
}

static void tell_import(void *argument, const cli_failed *one, int is_new)
{
    cli_failures_tell(argument, one, is_new ? "imported" : "left alone");
}

int cli_failures_import(cli_failures *f)
{
    const cli_failed_table table = table_of(f);
    return cli_failed_import(&table, f->file, tell_import, f);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages, all that are wanted in a table, or each whole.
 */
#include "config.h"

#include <sysexits.h>

#include "core/cli/describe.h"
#include "core/cli/failures.h"
#include "core/cli/waiting.h"

static void list_one(void *argument, const wb_failed *failed, const wb_failed_record *record)
{
    cli_failures *f = argument;
    if (f->is_json)
        cli_print_element(f->shown++, cli_failed_json(failed, record));
    else
        cli_failed_print_row(failed, record);
}

int cli_failures_list(cli_failures *f)
{
    if (!f->is_json)
        cli_failed_print_heading();
    return cli_failures_visit(f, list_one, f);
}

static int show_one(void *argument, const wb_failed *failed)
{
    cli_failures *f = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const int64_t body_max = f->setup->config->body_max;
    const int why = f->is_body ? wb_failed_decode_whole(failed->message, failed->message_size, body_max, &arena, &record)
                               : wb_failed_decode(failed->message, failed->message_size, &arena, &record);
    if (why)
        f->code = cli_failed_unread(failed->key, failed->key_size, why);
    else if (f->is_body)
        cli_waiting_print_content(record.operation->body, record.operation->body_size);
    else if (f->is_json)
        cli_print_element(f->shown++, cli_failed_whole_json(failed, &record));
    else
        cli_failed_print(failed, &record);
    wb_arena_free(&arena);
    return WB_OK;
}

/* One that cannot be read keeps nobody from the others. */
int cli_failures_show(cli_failures *f)
{
    const int code = cli_failures_find(f);
    if (code != EX_OK)
        return code;
    if (f->is_body && f->count > 1)
        return cli_fail(EX_USAGE, "%zu messages match: say which with --failure", f->count);
    f->code = EX_OK;
    for (size_t i = 0; i < f->count; i++)
        if (f->ops->get(f->session, f->found[i].key, f->found[i].key_size, show_one, f, &f->error) != WB_OK)
            return cli_failures_fail(f);
    return f->code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/asked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"

typedef struct {
    const wb_endpoint_setup *setup;
    wb_endpoint *endpoint; /* NULL: it has no tables, or none can be had: */
    wb_error error;
} place;

struct cli_asked {
    size_t count;
    place places[];
};

/* ---- begin and end ----------------------------------------------------------------------- */

cli_asked *cli_asked_make(const cli_hosted *hosted, size_t count)
{
    cli_asked *asked = wb_alloc_zero(1, sizeof *asked + count * sizeof *asked->places);
    asked->count = count;
    for (size_t i = 0; i < count; i++) {
        place *one = &asked->places[i];
        one->setup = hosted[i].setup;
        if (one->setup->persistence && wb_endpoint_create(one->setup, &one->endpoint, &one->error) != WB_OK)
            one->endpoint = NULL;
    }
    return asked;
}

void cli_asked_free(cli_asked *asked)
{
    for (size_t i = 0; asked && i < asked->count; i++)
        wb_endpoint_destroy(asked->places[i].endpoint);
    free(asked);
}

wb_deeds cli_asked_deeds(cli_asked *asked)
{
    static const wb_deed deeds[] = {
        { "/api/failures", 0, cli_asked_failures, 0 },
        { "/api/failures/groups", 0, cli_asked_groups, 0 },
        { "/api/failures/message", 0, cli_asked_failure, 0 },
        { "/api/failures/body", 0, cli_asked_body, 0 },
        { "/api/failures/editable", 0, cli_asked_editable, 0 },
        { "/api/failures/edit-retry", 1, cli_asked_to_edit, CLI_ASKED_EDIT_MAX },
        { "/api/failures/retry", 1, cli_asked_to_retry, 0 },
        { "/api/failures/archive", 1, cli_asked_to_archive, 0 },
        { "/api/delayed", 0, cli_asked_delayed, 0 },
        { "/api/delayed/message", 0, cli_asked_delayed_one, 0 },
        { "/api/delayed/cancel", 1, cli_asked_to_cancel, 0 },
        { "/api/delayed/reschedule", 1, cli_asked_to_reschedule, 0 },
        { "/api/pending", 0, cli_asked_pending, 0 },
    };
    return (wb_deeds){ deeds, sizeof deeds / sizeof deeds[0], asked };
}

/* ---- what is given ------------------------------------------------------------------------ */

const char *cli_asked_text(const json_t *given, const char *name)
{
    const char *text = json_string_value(json_object_get(given, name));
    return text && *text ? text : NULL;
}

size_t cli_asked_number(const json_t *given, const char *name, size_t otherwise, size_t most)
{
    const char *text = cli_asked_text(given, name);
    char *end = NULL;
    if (!text || *text < '0' || *text > '9')
        return otherwise;
    const unsigned long long number = strtoull(text, &end, 10);
    return *end ? otherwise : number < most ? (size_t)number : most;
}

/* ---- which tables -------------------------------------------------------------------------- */

int cli_keeps_failures(const wb_endpoint_setup *setup)
{
    return setup->persistence && setup->config->failures.at.is_set;
}

int cli_keeps_delayed(const wb_endpoint_setup *setup)
{
    const wb_persistence_ops *ops = setup->persistence_ops;
    return ops && !setup->plan.send_only && setup->plan.delay_by == WB_DELAYS_BY_STORE && WB_HAS(ops, wb_persistence_ops, delayed) &&
           ops->delayed;
}

int cli_keeps_pending(const wb_endpoint_setup *setup)
{
    const wb_persistence_ops *ops = setup->persistence_ops;
    return ops && setup->plan.outbox && WB_HAS(ops, wb_persistence_ops, list_pending);
}

const wb_endpoint_setup *cli_asked_choose(const cli_asked *asked, const json_t *given, int (*suits)(const wb_endpoint_setup *setup),
                                          const char *what, wb_answer *answer)
{
    const char *name = cli_asked_text(given, "endpoint");
    char text[400];
    for (size_t i = 0; i < asked->count; i++)
        if (suits(asked->places[i].setup) && (!name || strcmp(asked->places[i].setup->config->name, name) == 0))
            return asked->places[i].setup;
    (void)snprintf(text, sizeof text, "%s%.200s%s keeps no %s", name ? "endpoint \"" : "no endpoint here", name ? name : "", name ? "\"" : "",
                   what);
    wb_answer_refuse(answer, 404, text);
    return NULL;
}

static place *find(cli_asked *asked, const wb_endpoint_setup *setup)
{
    size_t i = 0;
    while (asked->places[i].setup != setup)
        i++;
    return &asked->places[i];
}

int cli_asked_open(cli_asked *asked, const wb_endpoint_setup *setup, cli_asked_tables *tables, wb_answer *answer)
{
    place *one = find(asked, setup);
    *tables = (cli_asked_tables){ .setup = setup, .endpoint = one->endpoint };
    if (!one->endpoint) {
        wb_answer_refuse(answer, 503, one->error.text);
        return 0;
    }
    if (wb_endpoint_open_storage(one->endpoint, &tables->session, &tables->error) == WB_OK)
        return 1;
    cli_asked_fail(tables, answer);
    cli_asked_close(tables);
    return 0;
}

void cli_asked_close(cli_asked_tables *tables)
{
    if (tables->session)
        tables->setup->persistence_ops->close(tables->session);
    tables->session = NULL;
}

/* ---- answers -------------------------------------------------------------------------------- */

void cli_asked_fail(const cli_asked_tables *tables, wb_answer *answer)
{
    wb_answer_refuse(answer, 503, tables->error.text);
}

void cli_asked_answer(wb_answer *answer, const wb_endpoint_setup *setup, const char *name, json_t *array, int has_more)
{
    wb_answer_json(answer, 200, json_pack("{s:s, s:o, s:b}", "endpoint", setup->config->name, name, array, "more", has_more));
}

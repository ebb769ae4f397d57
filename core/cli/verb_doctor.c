/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: what would bite, asked of the servers themselves.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/json_text.h"
#include "core/base/log.h"
#include "core/base/printable.h"
#include "core/cli/cli.h"
#include "core/cli/describe.h"
#include "core/config/units.h"
#include "core/doctor/doctor.h"
#include "core/endpoint/rehearsal.h"

/* Something would bite. None of sysexits.h says that, and none of the program's says something else. */
#define EX_BITES 1

#define OPTION_OUTAGE CLI_LONG_OPTION(1)
#define OUTAGE "3d"

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "look at this one only; default: all of the file" },
    { OPTION_OUTAGE, "outage", "DURATION", "what may stand still for so long and lose nothing; default: " OUTAGE },
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

/* ---- for programs -------------------------------------------------------------------------- */

static json_t *finding_json(const wb_finding_kept *f)
{
    return json_pack("{s:o*, s:s, s:o*, s:s, s:o, s:o, s:o*}", "endpoint", wb_json_text(f->at.endpoint), "part", f->at.part,
                     "plugin", wb_json_text(f->at.plugin), "severity", wb_finding_severity_name(f->severity), "name",
                     wb_json_text(f->name), "text", wb_json_text(f->text), "remedy", wb_json_text(f->remedy));
}

static void print_json(const wb_doctor *doctor)
{
    json_t *findings = json_array();
    for (size_t i = 0; i < doctor->findings.count; i++)
        json_array_append_new(findings, finding_json(&doctor->findings.items[i]));
    cli_print_json(json_pack("{s:b, s:b, s:o}", "ok", !doctor->findings.biting && doctor->failure.result == WB_OK,
                             "complete", doctor->failure.result == WB_OK, "findings", findings));
}

/* ---- for people ---------------------------------------------------------------------------- */

static void print_line(const char *label, const char *text)
{
    (void)printf("  %-9s ", label);
    wb_printable_print(stdout, text, strlen(text));
    (void)putchar('\n');
}

static void print_finding(const wb_finding_kept *f)
{
    (void)printf("%s%s%s%s%s: %s\n", f->at.endpoint ? f->at.endpoint : "", f->at.endpoint ? ": " : "", f->at.part,
                 f->at.plugin ? " " : "", f->at.plugin ? f->at.plugin : "", f->name);
    print_line(wb_finding_severity_name(f->severity), f->text);
    if (f->remedy)
        print_line("mend", f->remedy);
}

static void print_text(const wb_doctor *doctor)
{
    const wb_findings *findings = &doctor->findings;
    for (size_t i = 0; i < findings->count; i++)
        print_finding(&findings->items[i]);
    if (doctor->failure.result != WB_OK)
        (void)printf("%zu could not be looked at, and %zu would bite\n", findings->unseen, findings->biting);
    else if (findings->biting)
        (void)printf("%zu would bite\n", findings->biting);
    else
        (void)printf("nothing found that would bite\n");
}

/* ---- the verb ------------------------------------------------------------------------------- */

static void examine(wb_doctor *doctor, const wb_setup *setup, const wb_endpoint_setup *only)
{
    for (size_t i = 0; i < setup->endpoint_count; i++)
        if (!only || only == &setup->endpoints[i])
            wb_doctor_examine(doctor, &setup->endpoints[i]);
}

static int conclude(const wb_doctor *doctor)
{
    if (doctor->failure.result != WB_OK)
        return wb_error_exit_code(&doctor->failure);
    return doctor->findings.biting ? EX_BITES : EX_OK;
}

static int look_and_print(wb_doctor *doctor, const wb_setup *setup, const cli_values *values)
{
    const wb_endpoint_setup *only = NULL;
    if (values->value['e'] && !(only = cli_endpoint(setup, values->value['e'])))
        return EX_USAGE;
    wb_log_set_level(setup->config->log_level);
    examine(doctor, setup, only);
    (values->value['j'] ? print_json : print_text)(doctor);
    return conclude(doctor);
}

static int run(const cli_values *values)
{
    wb_doctor doctor = { .outage = 0 };
    wb_problems problems = { 0 };
    wb_setup *setup = NULL;
    wb_error first;
    const char *outage = values->value[OPTION_OUTAGE] ? values->value[OPTION_OUTAGE] : OUTAGE;
    if (wb_duration_parse(outage, &doctor.outage) != WB_UNIT_OK || doctor.outage < 0)
        return cli_fail(EX_USAGE, "--outage \"%s\" is not a duration like 10s, 2h or 7d", outage);
    int result = wb_setup_load(cli_config_path(values), 0, &setup, &problems);
    if (setup && wb_setup_rehearse(setup, NULL, &problems, &first) != WB_OK)
        result = WB_FATAL;
    wb_doctor_read_problems(&doctor, &problems);
    if (result != WB_OK)
        wb_problems_print(&problems, stderr);
    const int code = result == WB_OK ? look_and_print(&doctor, setup, values) : EX_CONFIG;
    wb_doctor_free(&doctor);
    wb_setup_free(setup);
    wb_problems_free(&problems);
    return code;
}

const cli_verb cli_verb_doctor = {
    .name = "doctor",
    .summary = "ask the servers and say what would bite, and what mends it",
    .help = "Looks at settings of the servers that lose commits or messages, privileges, limits,\n"
            "clocks, space and times that do not fit together, as the endpoints of the file would meet\n"
            "them. Changes nothing, also beside endpoints that run. Exit code 1: something would bite;\n"
            "0: nothing, but notes perhaps.",
    .options = options,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/log.h"
#include "core/cli/cli.h"
#include "core/cli/exits.h"
#include "core/config/suggest.h"

const cli_verb *const cli_verbs[] = {
    &cli_verb_check,
    &cli_verb_doctor,
    &cli_verb_install,
    &cli_verb_run,
    &cli_verb_status,
    &cli_verb_send,
    &cli_verb_publish,
    &cli_verb_delayed,
    &cli_verb_failures,
    &cli_verb_outbox,
    &cli_verb_rename,
    &cli_verb_uninstall,
    &cli_verb_new,
    &cli_verb_plugins,
    &cli_verb_conformance,
    &cli_verb_version,
    &cli_verb_help,
    NULL,
};

static const char *canonical_name(const char *name)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return "version";
    return name;
}

static const cli_verb *find_verb(const char *name)
{
    const char *near = NULL;
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        if (strcmp((*verb)->name, name) == 0)
            return *verb;
        wb_suggest(name, (*verb)->name, &near);
    }
    (void)cli_fail(EX_USAGE, "unknown verb \"%s\"%s%s%s (see: waybill help)", name,
                   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return NULL;
}

int main(int argc, char **argv)
{
    cli_values values;
    if (argc < 2)
        return cli_fail(EX_USAGE, "a verb is missing (see: waybill help)");
    const cli_verb *verb = find_verb(canonical_name(argv[1]));
    if (!verb)
        return EX_USAGE;
    if (verb->program)
        return cli_become(verb, argv + 1);
    int code = cli_parse(verb, argc - 1, argv + 1, &values);
    cli_exits_watch(); /* what a verb loads has constructors, and hooks */
    if (code < 0)
        code = verb->run(&values);
    wb_log_settle();
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_fail(EX_IOERR, "cannot write the output");
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/cli.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/buffer.h"
#include "core/base/log.h"
#include "core/base/printable.h"
#include "core/cli/progress.h"
#include "core/endpoint/rehearsal.h"

#define OPTIONS_MAX 24
/* Longest message: room for some paths and what a library says of them. */
#define TEXT_MAX 8192

const cli_option cli_option_help = { 'h', "help", NULL, "show this help" };

/* A verb's table in the two forms that getopt_long wants. */
typedef struct {
    char letters[2 * OPTIONS_MAX + 3];
    struct option names[OPTIONS_MAX + 2];
} getopt_tables;

int cli_fail(int code, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_progress_end();
    (void)fputs("waybill: ", stderr);
    wb_printable_print(stderr, text, strlen(text));
    (void)fputc('\n', stderr);
    return code;
}

static void print_option(const cli_option *option)
{
    char left[64], letter[] = { '-', option->letter, ',', '\0' };
    (void)snprintf(left, sizeof left, "%3s --%s%s%s", CLI_IS_LETTER(option->letter) ? letter : "",
                   option->name, option->argument ? " " : "", option->argument ? option->argument : "");
    (void)printf("  %-22s %s\n", left, option->help);
}

void cli_print_help(const cli_verb *verb)
{
    (void)printf("usage: waybill %s%s%s [OPTION...]\n\n%s\n", verb->name,
                 verb->arguments ? " " : "", verb->arguments ? verb->arguments : "",
                 verb->summary);
    if (verb->help)
        (void)printf("\n%s\n", verb->help);
    (void)printf("\n");
    for (const cli_option *option = verb->options; option->letter; option++)
        print_option(option);
    print_option(&cli_option_help);
}

static void add_option(getopt_tables *tables, size_t index, const cli_option *option)
{
    size_t used = strlen(tables->letters);
    if (CLI_IS_LETTER(option->letter))
        tables->letters[used++] = option->letter;
    if (CLI_IS_LETTER(option->letter) && option->argument)
        tables->letters[used++] = ':';
    tables->letters[used] = '\0';
    tables->names[index] =
        (struct option){ option->name, option->argument ? required_argument : no_argument, NULL,
                         option->letter };
}

static void make_tables(const cli_verb *verb, getopt_tables *tables)
{
    size_t index = 0;
    memset(tables, 0, sizeof *tables);
    for (; verb->options[index].letter && index < OPTIONS_MAX; index++)
        add_option(tables, index, &verb->options[index]);
    add_option(tables, index, &cli_option_help);
    tables->names[index].has_arg = optional_argument;
}

static int answer_help(const cli_verb *verb, const char *form)
{
    if (form && strcmp(form, "json") != 0)
        return cli_fail(EX_USAGE, "\"%s\" is no form of help: json, or none", form);
    if (form)
        cli_print_help_json(verb);
    else
        cli_print_help(verb);
    return EX_OK;
}

static int take_arguments(const cli_verb *verb, int count, char **arguments, cli_values *values)
{
    if (count < verb->argument_min || count > verb->argument_max || count > CLI_ARGUMENTS_MAX)
        return cli_fail(EX_USAGE, "%s takes %s%s (see: waybill %s --help)", verb->name,
                        verb->arguments ? "other arguments: " : "no arguments",
                        verb->arguments ? verb->arguments : "", verb->name);
    for (int i = 0; i < count; i++)
        values->arguments[i] = arguments[i];
    values->argument_count = count;
    return -1;
}

/* Nobody knows which of two was meant; what one wrapper and another say alike is no doubt. */
static int refuse_second(const cli_verb *verb, char letter, const char *first, const char *second)
{
    const cli_option *option = verb->options;
    if (!first || strcmp(first, second) == 0 || (verb->repeated && strchr(verb->repeated, letter)))
        return -1;
    while (option->letter != letter)
        option++;
    return cli_fail(EX_USAGE, "--%s is given twice: \"%s\" and \"%s\"", option->name, first, second);
}

int cli_parse(const cli_verb *verb, int argc, char **argv, cli_values *ret_values)
{
    getopt_tables tables;
    char name[64];
    int letter, code;

    /* getopt's own messages start with argv[0] */
    (void)snprintf(name, sizeof name, "waybill %s", verb->name);
    argv[0] = name;
    memset(ret_values, 0, sizeof *ret_values);
    make_tables(verb, &tables);
    while ((letter = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
        if (letter == 'h')
            return answer_help(verb, optarg);
        if (letter == '?')
            return cli_fail(EX_USAGE, "see: waybill %s --help", verb->name);
        if (ret_values->given_count == CLI_GIVEN_MAX)
            return cli_fail(EX_USAGE, "more than %d options", CLI_GIVEN_MAX);
        const char *text = optarg ? optarg : "";
        if ((code = refuse_second(verb, (char)letter, ret_values->value[letter & 127], text)) >= 0)
            return code;
        ret_values->value[letter & 127] = text;
        ret_values->given[ret_values->given_count++] = (struct cli_given){ (char)letter, text };
    }
    return take_arguments(verb, argc - optind, argv + optind, ret_values);
}

const char *cli_config_path(const cli_values *values)
{
    const char *environment = getenv("WAYBILL_CONF");
    if (values->value['c'])
        return values->value['c'];
    return environment && *environment ? environment : WB_SYSCONFDIR "/waybill.conf";
}

int cli_load(const cli_values *values, uint32_t flags, wb_setup **ret_setup)
{
    wb_problems problems = { 0 };
    wb_setup *setup = NULL;
    wb_error first;
    int result = wb_setup_load(cli_config_path(values), flags, &setup, &problems);

    if (setup && result != WB_OK) /* all at once, as `waybill check` has it */
        (void)wb_setup_rehearse(setup, NULL, &problems, &first);
    wb_problems_print(&problems, stderr);
    wb_problems_free(&problems);
    if (result != WB_OK) {
        wb_setup_free(setup);
        return EX_CONFIG;
    }
    wb_log_set_level(setup->config->log_level);
    *ret_setup = setup;
    return EX_OK;
}

const wb_endpoint_setup *cli_endpoint(const wb_setup *setup, const char *name)
{
    const wb_endpoint_setup *endpoint = wb_setup_endpoint(setup, name);
    if (endpoint)
        return endpoint;
    wb_buffer names = { 0 };
    for (size_t i = 0; i < setup->endpoint_count; i++) {
        wb_buffer_put(&names, " ", 1);
        wb_buffer_put(&names, setup->endpoints[i].config->name, strlen(setup->endpoints[i].config->name));
    }
    (void)cli_fail(EX_USAGE, "there is no endpoint \"%s\" in %s; there are:%.*s", name, setup->config->path,
                   (int)names.size, (const char *)names.data);
    wb_buffer_free(&names);
    return NULL;
}

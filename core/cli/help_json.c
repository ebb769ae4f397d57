/* SPDX-License-Identifier: Apache-2.0
 *
 * What --help says, for programs: completions are made of it. Apart from describe.c, which knows plugins, too: a
 * verb that is a program of its own has this.
 */
#include "config.h"

#include <jansson.h>
#include <stdio.h>

#include "core/cli/cli.h"

static void set_text(json_t *object, const char *name, const char *value)
{
    if (value)
        json_object_set_new(object, name, json_string(value));
}

static json_t *option_json(const cli_option *option)
{
    const char letter[] = { option->letter, '\0' };
    json_t *object = json_object();
    set_text(object, "letter", CLI_IS_LETTER(option->letter) ? letter : NULL);
    set_text(object, "name", option->name);
    set_text(object, "argument", option->argument);
    set_text(object, "help", option->help);
    return object;
}

void cli_print_help_json(const cli_verb *verb)
{
    json_t *object = json_object(), *options = json_array();
    set_text(object, "name", verb->name);
    set_text(object, "arguments", verb->arguments);
    set_text(object, "summary", verb->summary);
    set_text(object, "help", verb->help);
    for (const cli_option *option = verb->options; option->letter; option++)
        json_array_append_new(options, option_json(option));
    json_array_append_new(options, option_json(&cli_option_help));
    json_object_set_new(object, "options", options);
    (void)json_dumpf(object, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    (void)putchar('\n');
    json_decref(object);
}

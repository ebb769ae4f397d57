/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/describe.h"

#include <stdio.h>
#include <string.h>

#include "core/base/json_text.h"
#include "core/metrics/metrics.h"
#include "core/plugin/capability.h"

#define TEXT_WIDTH 92
#define INDENT 6
#define NUMBER_SIZE 40

json_t *cli_capabilities_json(uint64_t capabilities)
{
    json_t *names = json_array();
    for (const wb_capability_name *one = wb_capability_names; one->bit; one++)
        if (capabilities & one->bit)
            json_array_append_new(names, json_string(one->name));
    return names;
}

/* Words of a paragraph, wrapped. */
static void print_wrapped(const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (column && column + 1 + word > TEXT_WIDTH) {
            (void)printf("\n");
            column = 0;
        }
        (void)printf("%*s%.*s", column ? 1 : INDENT, "", (int)word, text);
        column += (column ? 1 : INDENT) + word;
        text += word;
        text += strspn(text, " \n");
    }
    (void)printf("\n");
}

static int has_range(const wb_option *option)
{
    return option->minimum || option->maximum;
}

/* All there is, or, of a path, the words that are none. */
static int has_choices(const wb_option *option)
{
    return option->choices && (option->type == WB_OPTION_CHOICE || option->type == WB_OPTION_PATH);
}

static const char *number(const wb_option *option, int64_t value, char text[NUMBER_SIZE])
{
    return wb_option_format(option->type, value, text, NUMBER_SIZE);
}

static void print_facts(const wb_option *option)
{
    char low[NUMBER_SIZE], high[NUMBER_SIZE];
    (void)printf("  %s (%s", option->name, wb_option_type_name(option->type));
    if (option->flags & WB_OPTION_REQUIRED)
        (void)printf(", required");
    if (option->flags & WB_OPTION_SECRET)
        (void)printf(", secret");
    if (option->default_text)
        (void)printf(", default %s", *option->default_text ? option->default_text : "\"\"");
    if (has_range(option) && option->maximum == INT64_MAX)
        (void)printf(", at least %s", number(option, option->minimum, low));
    else if (has_range(option))
        (void)printf(", %s to %s", number(option, option->minimum, low),
                     number(option, option->maximum, high));
    for (size_t i = 0; has_choices(option) && option->choices[i]; i++)
        (void)printf("%s%s", i ? " | " : option->type == WB_OPTION_PATH ? " or " : ": ", option->choices[i]);
    (void)printf(")\n");
}

void cli_describe_options(const wb_option *options, size_t count, size_t stride)
{
    for (size_t i = 0; i < count; i++) {
        wb_option option = wb_option_at(options, stride, i);
        print_facts(&option);
        if (option.summary)
            print_wrapped(option.summary);
        if (option.help)
            print_wrapped(option.help);
    }
}

static void set_text(json_t *object, const char *name, const char *value)
{
    if (value)
        json_object_set_new(object, name, wb_json_text(value));
}

static json_t *option_json(const wb_option *option)
{
    char text[NUMBER_SIZE];
    json_t *object = json_object();
    set_text(object, "name", option->name);
    set_text(object, "type", wb_option_type_name(option->type));
    json_object_set_new(object, "required", json_boolean(option->flags & WB_OPTION_REQUIRED));
    json_object_set_new(object, "secret", json_boolean(option->flags & WB_OPTION_SECRET));
    set_text(object, "default", option->default_text);
    if (has_range(option)) {
        set_text(object, "minimum", number(option, option->minimum, text));
        if (option->maximum != INT64_MAX)
            set_text(object, "maximum", number(option, option->maximum, text));
    }
    if (has_choices(option)) {
        json_t *choices = json_array();
        for (size_t i = 0; option->choices[i]; i++)
            json_array_append_new(choices, wb_json_text(option->choices[i]));
        json_object_set_new(object, "choices", choices);
    }
    set_text(object, "since", option->since);
    set_text(object, "summary", option->summary);
    set_text(object, "help", option->help);
    return object;
}

json_t *cli_options_json(const wb_option *options, size_t count, size_t stride)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        wb_option option = wb_option_at(options, stride, i);
        json_array_append_new(array, option_json(&option));
    }
    return array;
}

void cli_describe_sections(void)
{
    for (size_t i = 0; i < WB_SECTION_COUNT; i++) {
        const wb_config_section *section = &wb_config_sections[i];
        (void)printf("%s%s%s\n", section->name, *section->name ? ": " : "", section->summary);
        cli_describe_options(section->options, section->option_count, sizeof *section->options);
        (void)printf("\n");
    }
}

json_t *cli_sections_json(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < WB_SECTION_COUNT; i++) {
        const wb_config_section *section = &wb_config_sections[i];
        json_t *object = json_object();
        set_text(object, "name", section->name);
        set_text(object, "summary", section->summary);
        json_object_set_new(object, "options",
                            cli_options_json(section->options, section->option_count,
                                             sizeof *section->options));
        json_array_append_new(array, object);
    }
    return array;
}

/* ---- metrics ----------------------------------------------------------------------------- */

static json_t *alert_json(const wb_metric_alert *alert)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "name", alert->name, "expression", alert->expression, "lasts", alert->lasts,
                     "says", alert->says);
}

static json_t *metric_json(const wb_metric *metric)
{
    json_t *object = json_object();
    set_text(object, "name", metric->name);
    set_text(object, "samples", wb_metric_suffix(metric->type));
    set_text(object, "type", wb_metric_type_name(metric->type));
    set_text(object, "unit", metric->unit);
    set_text(object, "label", metric->label);
    set_text(object, "help", metric->help);
    set_text(object, "panel", metric->panel);
    json_object_set_new(object, "process", json_boolean(metric->is_of_process));
    if (metric->alert.name)
        json_object_set_new(object, "alert", alert_json(&metric->alert));
    return object;
}

json_t *cli_metrics_json(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < wb_metric_count; i++)
        json_array_append_new(array, metric_json(&wb_metrics[i]));
    return array;
}

void cli_describe_metrics(void)
{
    for (size_t i = 0; i < wb_metric_count; i++) {
        const wb_metric *metric = &wb_metrics[i];
        (void)printf("  %s%s (%s%s%s%s)\n", metric->name, wb_metric_suffix(metric->type), wb_metric_type_name(metric->type),
                     metric->is_of_process ? "" : ", by endpoint", metric->label ? ", by " : "",
                     metric->label ? metric->label : "");
        print_wrapped(metric->help);
    }
}

void cli_print_json(json_t *value)
{
    (void)json_dumpf(value, stdout, CLI_JSON);
    (void)printf("\n");
    json_decref(value);
}

void cli_print_element(size_t before, json_t *element)
{
    (void)fputs(before ? ",\n" : "[\n", stdout);
    (void)json_dumpf(element, stdout, CLI_JSON);
    json_decref(element);
}

void cli_print_end(size_t count)
{
    (void)puts(count ? "\n]" : "[]");
}

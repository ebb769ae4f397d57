/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables and capabilities in words, for people and as JSON. The man pages and the
 * sample configuration are made from the JSON.
 */
#ifndef WB_CLI_DESCRIBE_H
#define WB_CLI_DESCRIBE_H

#include <jansson.h>

#include "core/config/configuration.h"

/** Print a table of options to stdout. */
void cli_describe_options(const wb_option *options, size_t count, size_t stride);
json_t *cli_options_json(const wb_option *options, size_t count, size_t stride);

/** Print the core's own options (wb_config_sections) to stdout. */
void cli_describe_sections(void);
json_t *cli_sections_json(void);

/** The table of metrics, for programs and for people. */
json_t *cli_metrics_json(void);
void cli_describe_metrics(void);

/** The names of the capability bits that are set; unknown bits are left out. */
json_t *cli_capabilities_json(uint64_t capabilities);

/** How values for programs are written: characters of others reach a terminal as \uNNNN. */
#define CLI_JSON (JSON_INDENT(2) | JSON_ENSURE_ASCII)

/** Write a value to stdout, indented, and release it. */
void cli_print_json(json_t *value);
/** An array of which one element is in memory: each is written and released when it is there, behind so many others. */
void cli_print_element(size_t before, json_t *element);
/** And its end, behind so many; of none all of it. */
void cli_print_end(size_t count);

#endif

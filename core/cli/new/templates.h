/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the projects that `waybill new` writes, as they lie in the source: part of the program, made by `embed`.
 */
#ifndef WB_CLI_NEW_TEMPLATES_H
#define WB_CLI_NEW_TEMPLATES_H

#include <stddef.h>

typedef struct cli_template {
    const char *project; /* "handler", "handler-pgsql", "transport", "persistence" */
    const char *name;    /* of the file */
    const unsigned char *text;
    size_t size;
} cli_template;

extern const cli_template cli_templates[];
extern const size_t cli_template_count;

#endif

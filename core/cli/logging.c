/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/logging.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/log_sink.h"
#include "core/cli/cli.h"

/* A configuration that comes through a pipe cannot be read again; that is said when it is tried. */
static char *make_absolute(const char *path)
{
    char directory[PATH_MAX];
    const size_t size = sizeof directory + 1 + strlen(path);
    if (*path == '/' || !getcwd(directory, sizeof directory))
        return wb_strdup(path);
    char *absolute = wb_alloc(size);
    (void)snprintf(absolute, size, "%s/%s", directory, path);
    return absolute;
}

/* @return 0, or an errno and nothing has changed. */
static int set_up(const wb_config *config)
{
    int code = 0;
    wb_log_settle(); /* into the file, and the form, of the lines that they sum up */
    if (config->log_file)
        code = wb_log_sink_open(config->log_file);
    else
        wb_log_sink_close();
    if (code != 0)
        return code;
    wb_log_set_level(config->log_level);
    wb_log_set_format(config->log_format);
    return 0;
}

int cli_logging_open(cli_logging *logging, const wb_config *config)
{
    logging->path = make_absolute(config->path);
    int code = set_up(config);
    if (code != 0)
        return cli_fail(EX_CONFIG, "%s:%d: option \"log_file\": cannot open \"%s\": %s", config->log_file_at.file,
                        config->log_file_at.line, config->log_file, strerror(code));
    return EX_OK;
}

void cli_logging_end(cli_logging *logging)
{
    free(logging->path);
    logging->path = NULL;
}

/* ---- SIGHUP ------------------------------------------------------------------------------ */

/* Somebody asked, and waits for it: whatever level has just come into force. */
static void complain(const char *reason, const char *problems)
{
    const wb_field fields[] = { { "problems", problems }, { "reason", reason } };
    wb_log_answer(WB_LOG_WARNING, "SIGHUP: the log stays as it is", fields, 2);
}

static const char *find_error(const wb_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        if (problems->items[i].level == WB_LOG_ERROR)
            return problems->items[i].text;
    return "it cannot be read";
}

/* Its first; `waybill check` has them all. */
static void complain_of_problems(const wb_problems *problems)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%zu", problems->error_count);
    complain(find_error(problems), number);
}

static void use(const wb_config *config)
{
    char reason[PATH_MAX + 200];
    int code = set_up(config);
    if (code == 0) {
        wb_log_answer(WB_LOG_INFO, "SIGHUP: the log is as the configuration says now",
                      &(wb_field){ "log_file", config->log_file }, 1);
        return;
    }
    (void)snprintf(reason, sizeof reason, "cannot open \"%s\": %s", config->log_file, strerror(code));
    complain(reason, NULL);
}

void cli_logging_renew(const cli_logging *logging)
{
    wb_problems problems = { 0 };
    wb_config *config = wb_config_load(logging->path, &problems);
    if (!config || problems.error_count)
        complain_of_problems(&problems);
    else
        use(config);
    wb_config_free(config);
    wb_problems_free(&problems);
}

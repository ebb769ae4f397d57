/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration files. What is refused says where and why, in one line each; what is accepted is
 * within the ranges of the option tables.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <waybill/handler.h>

#include "core/config/configuration.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "config";

/* libconfig 1.5 forgets the string it was reading, or has just read, when it meets a syntax error: bytes,
 * once, in a program that is about to exit. Anything else that leaks is ours. */
WB_PUBLIC const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:strbuf_append\nleak:libconfig_yylex\n";
}

/* ---- files -------------------------------------------------------------------------------- */

static char directory[64], path[96], included[96];

static void clean_up(void)
{
    (void)unlink(path);
    (void)unlink(included);
    (void)rmdir(directory);
}

static void write_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(name, "wb");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0 && chmod(name, 0600) == 0);
}

/* One that may be included, and a place for the others. */
static void prepare(void)
{
    static const char text[] = "transport = { plugin = \"amqp\"; host = \"localhost\"; };\n";
    if (directory[0])
        return;
    (void)snprintf(directory, sizeof directory, "/tmp/waybill-fuzz-XXXXXX");
    FUZZ_CHECK(mkdtemp(directory) != NULL);
    (void)atexit(clean_up);
    (void)snprintf(path, sizeof path, "%s/fuzz.conf", directory);
    (void)snprintf(included, sizeof included, "%s/inner.inc", directory);
    write_file(included, text, sizeof text - 1);
}

/* ---- what is accepted --------------------------------------------------------------------- */

/* One group has no defaults where it is absent: one of its options is required. */
static int is_read(const wb_endpoint_config *endpoint, size_t section)
{
    return section != WB_SECTION_FAILURES || endpoint->failures.at.is_set;
}

static void check_number(const wb_option *option, int64_t value)
{
    const int has_range = option->minimum || option->maximum;
    FUZZ_CHECK(!has_range || (value >= option->minimum && value <= option->maximum));
}

static void check_option(const wb_option *option, const void *target)
{
    const void *field = (const char *)target + option->offset;
    switch (option->type) {
    case WB_OPTION_INTEGER:
    case WB_OPTION_DURATION:
    case WB_OPTION_SIZE: check_number(option, *(const int64_t *)field); break;
    case WB_OPTION_BOOLEAN: FUZZ_CHECK(*(const int32_t *)field == 0 || *(const int32_t *)field == 1); break;
    case WB_OPTION_STRING: FUZZ_CHECK(!(option->flags & WB_OPTION_REQUIRED) || *(const char *const *)field); break;
    default: break;
    }
}

static void check_endpoint(const wb_config *config, const wb_endpoint_config *endpoint)
{
    FUZZ_CHECK(endpoint->name[0] && strlen(endpoint->name) <= WB_ENDPOINT_NAME_MAX);
    FUZZ_CHECK(wb_config_endpoint(config, endpoint->name) == endpoint);
    for (size_t i = WB_SECTION_ENDPOINT; i < WB_SECTION_HTTP; i++)
        for (size_t k = 0; is_read(endpoint, i) && k < wb_config_sections[i].option_count; k++)
            check_option(&wb_config_sections[i].options[k], endpoint);
}

static void check_problems(const wb_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const char *text = problems->items[i].text;
        FUZZ_CHECK(strstr(text, directory) != NULL);
        for (; *text; text++)
            FUZZ_CHECK((unsigned char)*text >= 0x20 && *text != 0x7f);
    }
}

void fuzz_one(const void *data, size_t size)
{
    wb_problems problems = { 0 };
    prepare();
    write_file(path, data, size);
    wb_config *config = wb_config_load(path, &problems);
    FUZZ_CHECK(config || problems.error_count);
    check_problems(&problems);
    for (size_t i = 0; config && !problems.error_count && i < config->endpoint_count; i++)
        check_endpoint(config, &config->endpoints[i]);
    wb_config_free(config);
    wb_problems_free(&problems);
}

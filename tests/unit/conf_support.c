/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <dirent.h>

#define PATHS 5

char conf_directory[64];

int conf_setup(void **state)
{
    (void)state;
    (void)snprintf(conf_directory, sizeof conf_directory, "/tmp/waybill-unit-XXXXXX");
    return mkdtemp(conf_directory) ? 0 : -1;
}

static const char *path_of(const char *name)
{
    static char paths[PATHS][512];
    static size_t next;
    char *path = paths[next++ % PATHS];
    (void)snprintf(path, sizeof paths[0], "%s/%s", conf_directory, name);
    return path;
}

int conf_teardown(void **state)
{
    (void)state;
    DIR *stream = opendir(conf_directory);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        if (entry->d_name[0] != '.')
            (void)remove(path_of(entry->d_name));
    if (stream)
        closedir(stream);
    return rmdir(conf_directory);
}

const char *conf_write_bytes(const char *name, const void *data, size_t size)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
    return path;
}

const char *conf_write(const char *name, const char *text)
{
    return conf_write_bytes(name, text, strlen(text));
}

static int holds(const wb_problems *problems, const char *text)
{
    for (size_t i = 0; i < problems->count; i++)
        if (strstr(problems->items[i].text, text))
            return 1;
    return 0;
}

void assert_problem(const wb_problems *problems, const char *text)
{
    if (holds(problems, text))
        return;
    wb_problems_print(problems, stderr);
    fail_msg("no problem holds: %s", text);
}

void assert_no_problem(const wb_problems *problems, const char *text)
{
    if (!holds(problems, text))
        return;
    wb_problems_print(problems, stderr);
    fail_msg("a problem holds: %s", text);
}

void assert_error_count(const wb_problems *problems, size_t count)
{
    if (problems->error_count == count)
        return;
    wb_problems_print(problems, stderr);
    fail_msg("%zu errors, expected %zu", problems->error_count, count);
}

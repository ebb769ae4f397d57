/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/search.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config/suggest.h"
#include "core/plugin/abi.h"

#define DIRECTORIES_TEXT_SIZE 600
static const char suffix[] = ".so";

int wb_plugin_is_name(const char *name)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return size >= 1 && size <= 64 && name[size] == '\0';
}

static size_t directory_count(const wb_config *config)
{
    return 1 + (config ? config->plugin_path_count : 0);
}

static const char *directory_at(const wb_config *config, size_t index)
{
    if (index > 0)
        return config->plugin_path[index - 1];
    /* NULL as well when the process runs with more rights than its caller */
    const char *override = secure_getenv("WAYBILL_PLUGIN_DIR");
    return override && *override ? override : WB_PLUGIN_DIR;
}

static int exists(char path[PATH_MAX], int written)
{
    return written > 0 && written < PATH_MAX && access(path, F_OK) == 0;
}

static int find_in(const char *directory, uint32_t kind, const char *name, char path[PATH_MAX])
{
    const char *folder = wb_plugin_kind_name(kind);
    return exists(path, snprintf(path, PATH_MAX, "%s/%s/%s%s", directory, folder, name, suffix)) ||
           exists(path, snprintf(path, PATH_MAX, "%s/%s/%s/.libs/%s%s", directory, folder, name,
                                 name, suffix)) ||
           exists(path, snprintf(path, PATH_MAX, "%s/%s%s", directory, name, suffix));
}

static int not_found(const wb_config *config, uint32_t kind, const char *name, wb_error *error)
{
    char directories[DIRECTORIES_TEXT_SIZE];
    size_t used = 0;
    const char *near = NULL;
    wb_plugin_files files;

    for (size_t i = 0; i < directory_count(config) && used < sizeof directories; i++)
        used += (size_t)snprintf(directories + used, sizeof directories - used, "%s\"%s\"",
                                 i ? ", " : "", directory_at(config, i));
    wb_plugin_files_list(config, &files);
    for (size_t i = 0; i < files.count; i++)
        if (files.items[i].kind == kind)
            wb_suggest(name, files.items[i].name, &near);
    (void)wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                       "there is no %s plugin \"%s\" in %s%s%s%s", wb_plugin_kind_name(kind), name,
                       directories, near ? "; did you mean \"" : "", near ? near : "",
                       near ? "\"?" : "");
    wb_plugin_files_free(&files);
    return WB_FATAL;
}

int wb_plugin_find(const wb_config *config, uint32_t kind, const char *name, char path[PATH_MAX],
                   wb_error *error)
{
    if (!wb_plugin_is_name(name))
        return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                            "\"%.80s\" is not the name of a plugin (1 to 64 of a-z, 0-9, _ and -)",
                            name);
    for (size_t i = 0; i < directory_count(config); i++)
        if (find_in(directory_at(config, i), kind, name, path))
            return WB_OK;
    return not_found(config, kind, name, error);
}

static int is_listed(const wb_plugin_files *files, uint32_t kind, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (files->items[i].kind == kind && strcmp(files->items[i].name, name) == 0)
            return 1;
    return 0;
}

static void add_file(wb_plugin_files *files, const char *directory, uint32_t kind,
                     const char *entry)
{
    wb_plugin_file file = { .kind = kind };
    char path[PATH_MAX];
    size_t size = strlen(entry);

    if (size > strlen(suffix) && strcmp(entry + size - strlen(suffix), suffix) == 0)
        size -= strlen(suffix);
    if (size >= sizeof file.name)
        return;
    memcpy(file.name, entry, size);
    if (!wb_plugin_is_name(file.name) || is_listed(files, kind, file.name) ||
        !find_in(directory, kind, file.name, path))
        return;
    file.path = wb_strdup(path);
    files->items = wb_realloc(files->items, (files->count + 1) * sizeof *files->items);
    files->items[files->count++] = file;
}

static void list_folder(wb_plugin_files *files, const char *directory, uint32_t kind)
{
    char folder[PATH_MAX];
    int size = snprintf(folder, sizeof folder, "%s/%s", directory, wb_plugin_kind_name(kind));
    DIR *stream = size > 0 && size < PATH_MAX ? opendir(folder) : NULL;
    const struct dirent *entry;

    if (!stream)
        return;
    while ((entry = readdir(stream)))
        add_file(files, directory, kind, entry->d_name);
    closedir(stream);
}

static int compare_files(const void *left, const void *right)
{
    const wb_plugin_file *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return strcmp(a->name, b->name);
}

void wb_plugin_files_list(const wb_config *config, wb_plugin_files *files)
{
    *files = (wb_plugin_files){ NULL, 0 };
    for (size_t i = 0; i < directory_count(config); i++) {
        list_folder(files, directory_at(config, i), WB_PLUGIN_TRANSPORT);
        list_folder(files, directory_at(config, i), WB_PLUGIN_PERSISTENCE);
    }
    if (files->count)
        qsort(files->items, files->count, sizeof *files->items, compare_files);
}

void wb_plugin_files_free(wb_plugin_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].path);
    free(files->items);
    *files = (wb_plugin_files){ NULL, 0 };
}

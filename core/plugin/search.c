/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/search.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/config/suggest.h"
#include "core/plugin/abi.h"
#include "core/plugin/image.h"

#define DIRECTORIES_TEXT_SIZE 600
#define CANDIDATES_TEXT_SIZE 300
#define NAME_SIZE sizeof(((wb_plugin_file *)0)->name)
static const char suffix[] = ".so";

int wb_plugin_is_name(const char *name)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return size >= 1 && size <= 64 && name[size] == '\0';
}

void wb_plugin_entry_name(const char *name, char entry[WB_PLUGIN_ENTRY_SIZE])
{
    (void)snprintf(entry, WB_PLUGIN_ENTRY_SIZE, "%s_LTX_wb_plugin", name);
    for (char *c = entry; *c; c++)
        if (*c == '-')
            *c = '_';
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

static int find(const wb_config *config, uint32_t kind, const char *name, char path[PATH_MAX])
{
    for (size_t i = 0; i < directory_count(config); i++)
        if (find_in(directory_at(config, i), kind, name, path))
            return 1;
    return 0;
}

static void release_files(void *files)
{
    wb_plugin_files_free(files);
}

/* What may have been meant: the nearest, or all there are, for nothing in "postgres" is near "pgsql". */
static void say_candidates(const wb_plugin_files *files, uint32_t kind, const char *name,
                           char text[CANDIDATES_TEXT_SIZE])
{
    const char *near = NULL;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < files->count; i++) {
        const wb_plugin_file *file = &files->items[i];
        if (file->kind != kind && file->kind != WB_PLUGIN_ANY_KIND)
            continue;
        wb_suggest(name, file->name, &near);
        if (used < CANDIDATES_TEXT_SIZE)
            used += (size_t)snprintf(text + used, CANDIDATES_TEXT_SIZE - used, "%s\"%s\"",
                                     used ? ", " : "; there is ", file->name);
    }
    if (near)
        (void)snprintf(text, CANDIDATES_TEXT_SIZE, "; did you mean \"%s\"?", near);
}

static int not_found(const wb_config *config, uint32_t kind, const char *name, wb_error *error)
{
    char directories[DIRECTORIES_TEXT_SIZE], candidates[CANDIDATES_TEXT_SIZE];
    size_t used = 0;
    wb_plugin_files files;
    wb_memory_held held;

    for (size_t i = 0; i < directory_count(config) && used < sizeof directories; i++)
        used += (size_t)snprintf(directories + used, sizeof directories - used, "%s\"%s\"",
                                 i ? ", " : "", directory_at(config, i));
    files = (wb_plugin_files){ NULL, 0 };
    wb_memory_hold(&held, release_files, &files);
    wb_plugin_files_list(config, &files);
    wb_memory_let_go(&held);
    say_candidates(&files, kind, name, candidates);
    wb_plugin_files_free(&files);
    return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0, "there is no %s plugin \"%s\" in %s%s",
                        wb_plugin_kind_name(kind), name, directories, candidates);
}

int wb_plugin_find(const wb_config *config, uint32_t kind, const char *name, char path[PATH_MAX],
                   wb_error *error)
{
    if (!wb_plugin_is_name(name))
        return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                            "\"%.80s\" is not the name of a plugin (1 to 64 of a-z, 0-9, _ and -)",
                            name);
    return find(config, kind, name, path) ? WB_OK : not_found(config, kind, name, error);
}

static int is_listed(const wb_plugin_files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->items[i].path, path) == 0)
            return 1;
    return 0;
}

static void add_file(wb_plugin_files *files, uint32_t kind, const char *name, const char *path)
{
    wb_plugin_file file = { .kind = kind };
    (void)snprintf(file.name, sizeof file.name, "%s", name);
    files->items = wb_realloc(files->items, (files->count + 1) * sizeof *files->items);
    file.path = wb_strdup(path);
    files->items[files->count++] = file;
}

static int ends_with_suffix(const char *entry)
{
    const size_t size = strlen(entry);
    return size > strlen(suffix) && strcmp(entry + size - strlen(suffix), suffix) == 0;
}

/* The name of a plugin in a directory's entry: NAME.so, or the folder NAME of a build tree. */
static int name_of(const char *entry, char name[NAME_SIZE])
{
    const size_t size = strlen(entry) - (ends_with_suffix(entry) ? strlen(suffix) : 0);
    if (size >= NAME_SIZE)
        return 0;
    memcpy(name, entry, size);
    name[size] = '\0';
    return wb_plugin_is_name(name);
}

static void add_of_kind(wb_plugin_files *files, const wb_config *config, uint32_t kind, const char *name)
{
    char path[PATH_MAX];
    if (find(config, kind, name, path) && !is_listed(files, path))
        add_file(files, kind, name, path);
}

int wb_plugin_file_is_first(const wb_config *config, uint32_t kind, const wb_plugin_file *file)
{
    char found[PATH_MAX];
    return find(config, kind, file->name, found) && strcmp(found, file->path) == 0;
}

/* DIR/NAME.so, if it is found for one kind at least, and says that it is a plugin of that name. */
static void add_of_any_kind(wb_plugin_files *files, const wb_config *config, const char *directory, const char *name)
{
    char path[PATH_MAX], entry[WB_PLUGIN_ENTRY_SIZE];
    wb_plugin_file file = { .path = path };
    if (!exists(path, snprintf(path, sizeof path, "%s/%s%s", directory, name, suffix)) || is_listed(files, path))
        return;
    (void)snprintf(file.name, sizeof file.name, "%s", name);
    wb_plugin_entry_name(name, entry);
    if ((wb_plugin_file_is_first(config, WB_PLUGIN_TRANSPORT, &file) ||
         wb_plugin_file_is_first(config, WB_PLUGIN_PERSISTENCE, &file) ||
         wb_plugin_file_is_first(config, WB_PLUGIN_OBSERVER, &file)) &&
        wb_image_holds(path, entry))
        add_file(files, WB_PLUGIN_ANY_KIND, name, path);
}

static void close_folder(void *stream)
{
    (void)closedir(stream);
}

static void list_folder(wb_plugin_files *files, const wb_config *config, const char *directory, uint32_t kind)
{
    char folder[PATH_MAX], name[NAME_SIZE];
    const int is_flat = kind == WB_PLUGIN_ANY_KIND;
    int size = snprintf(folder, sizeof folder, "%s/%s", directory, is_flat ? "." : wb_plugin_kind_name(kind));
    DIR *stream = size > 0 && size < PATH_MAX ? opendir(folder) : NULL;
    const struct dirent *entry;
    wb_memory_held held;

    if (!stream)
        return;
    wb_memory_hold(&held, close_folder, stream);
    while ((entry = readdir(stream))) {
        if (!name_of(entry->d_name, name))
            continue;
        if (is_flat && ends_with_suffix(entry->d_name))
            add_of_any_kind(files, config, directory, name);
        else if (!is_flat)
            add_of_kind(files, config, kind, name);
    }
    wb_memory_let_go(&held);
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
        list_folder(files, config, directory_at(config, i), WB_PLUGIN_TRANSPORT);
        list_folder(files, config, directory_at(config, i), WB_PLUGIN_PERSISTENCE);
        list_folder(files, config, directory_at(config, i), WB_PLUGIN_OBSERVER);
        list_folder(files, config, directory_at(config, i), WB_PLUGIN_ANY_KIND);
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

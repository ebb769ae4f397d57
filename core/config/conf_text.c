/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/conf_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"

#define SIZE_LIMIT ((size_t)1024 * 1024)
#define INCLUDE_LIMIT 10
#define NESTING_LIMIT 16
#define DIGITS_LIMIT 18
#define REASON_SIZE 200

/* One file being copied into the expanded text. */
typedef struct scan {
    wb_conf_source *source;
    wb_arena *arena;
    wb_problems *problems;
    const char *file;
    const char *at;
    const char *end;
    const char *taken; /* a character further on that was taken already (end_string()); NULL: none */
    int line;
    int at_line_start; /* of the file being read */
    int include_depth;
    int *nesting; /* shared with the including files */
} scan;

static int scan_file(wb_conf_source *source, wb_arena *arena, wb_problems *problems,
                     const char *path, wb_conf_origin asked_at, int include_depth, int *nesting);

static wb_conf_origin here(const scan *s, int line)
{
    return (wb_conf_origin){ s->file, line, 1 };
}

static void remember_line(wb_conf_source *source, wb_conf_origin origin)
{
    if (source->line_count == source->line_capacity) {
        source->line_capacity = source->line_capacity ? source->line_capacity * 2 : 128;
        source->lines =
            wb_realloc(source->lines, source->line_capacity * sizeof *source->lines);
    }
    source->lines[source->line_count++] = origin;
}

static void emit(scan *s, char c)
{
    wb_buffer *text = &s->source->text;
    if (text->size == 0 || text->data[text->size - 1] == '\n')
        remember_line(s->source, here(s, s->line));
    wb_buffer_put(text, &c, 1);
}

static void take(scan *s)
{
    char c = *s->at++;
    emit(s, c);
    s->at_line_start = c == '\n';
    if (c == '\n')
        s->line++;
}

/* A token that may have been taken in front of its place. */
static void take_once(scan *s)
{
    if (s->at != s->taken) {
        take(s);
        return;
    }
    s->at++;
    s->at_line_start = 0;
}

static int starts_with(const scan *s, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(s->end - s->at) >= size && memcmp(s->at, word, size) == 0;
}

static const char *skip_comment(const char *at, const char *end)
{
    const int is_block = at[0] == '/' && at + 1 < end && at[1] == '*';
    const char *close = is_block ? memmem(at + 2, (size_t)(end - at) - 2, "*/", 2) : memchr(at, '\n', (size_t)(end - at));
    return close ? close + (is_block ? 2 : 1) : end;
}

/* What follows a string in a list, over lines and comments; NULL: something else, or nothing, does. */
static const char *find_end_of_element(const scan *s)
{
    for (const char *at = s->at; at < s->end;) {
        const int is_comment = *at == '#' || (*at == '/' && at + 1 < s->end && (at[1] == '/' || at[1] == '*'));
        if (is_comment)
            at = skip_comment(at, s->end);
        else if (strchr(" \t\r\n", *at))
            at++;
        else
            return strchr(",])", *at) ? at : NULL;
    }
    return NULL;
}

/* libconfig joins strings that follow each other, so that it ends one where it sees the next token, and has the
 * element of a list stand in that line: the token is taken at once. */
static void end_string(scan *s)
{
    s->taken = find_end_of_element(s);
    if (s->taken)
        emit(s, *s->taken);
}

static int take_string(scan *s)
{
    int line = s->line;
    take(s);
    while (s->at < s->end && *s->at != '"') {
        if (*s->at == '\\' && s->at + 1 < s->end)
            take(s);
        take(s);
    }
    if (s->at == s->end) {
        wb_problems_add(s->problems, WB_LOG_ERROR, here(s, line),
                        "a string that starts here is not closed");
        return WB_FATAL;
    }
    take(s);
    end_string(s);
    return WB_OK;
}

static int take_block_comment(scan *s)
{
    int line = s->line;
    take(s);
    take(s);
    while (s->at < s->end && !starts_with(s, "*/"))
        take(s);
    if (s->at == s->end) {
        wb_problems_add(s->problems, WB_LOG_ERROR, here(s, line),
                        "a comment that starts here is not closed");
        return WB_FATAL;
    }
    take(s);
    take(s);
    return WB_OK;
}

static void take_line_comment(scan *s)
{
    while (s->at < s->end && *s->at != '\n')
        take(s);
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '*';
}

static void take_name(scan *s)
{
    while (s->at < s->end && is_word(*s->at))
        take(s);
}

static int is_number_start(const scan *s)
{
    int has_sign = *s->at == '-' || *s->at == '+';
    return s->at + has_sign < s->end && is_digit(s->at[has_sign]);
}

static int take_number(scan *s)
{
    size_t digits = 0, others = 0;
    if (!is_digit(*s->at))
        take(s);
    for (; s->at < s->end && (is_word(*s->at) || *s->at == '.' || *s->at == '+'); take(s))
        *(is_digit(*s->at) ? &digits : &others) += 1;
    if (digits > DIGITS_LIMIT || (others == 1 && digits > 9 && strchr("xX", s->at[-1]))) {
        wb_problems_add(s->problems, WB_LOG_ERROR, here(s, s->line),
                        "a number of %zu digits is too large; %d digits are the most", digits,
                        DIGITS_LIMIT);
        return WB_FATAL;
    }
    if (others == 0)
        emit(s, 'L');
    return WB_OK;
}

static int nest(scan *s)
{
    if (strchr("{[(", *s->at)) {
        if (++*s->nesting > NESTING_LIMIT) {
            wb_problems_add(s->problems, WB_LOG_ERROR, here(s, s->line),
                            "groups and lists are nested more than %d deep", NESTING_LIMIT);
            return WB_FATAL;
        }
    } else if (*s->nesting > 0) {
        --*s->nesting;
    }
    take_once(s);
    return WB_OK;
}

static void skip_blanks(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

static int bad_include(const scan *s)
{
    wb_problems_add(s->problems, WB_LOG_ERROR, here(s, s->line),
                    "@include must stand alone on its line: @include \"FILE\"");
    return WB_FATAL;
}

static int take_include(scan *s)
{
    s->at += strlen("@include");
    skip_blanks(s);
    if (s->at == s->end || *s->at != '"')
        return bad_include(s);
    const char *name = ++s->at;
    while (s->at < s->end && *s->at != '"' && *s->at != '\n')
        s->at++;
    if (s->at == s->end || *s->at != '"' || s->at == name)
        return bad_include(s);
    const char *path = wb_conf_path(s->arena, here(s, s->line),
                                    wb_arena_copy(s->arena, name, (size_t)(s->at - name)));
    s->at++;
    skip_blanks(s);
    if (s->at < s->end && *s->at == '#')
        while (s->at < s->end && *s->at != '\n')
            s->at++;
    if (s->at < s->end && *s->at != '\n')
        return bad_include(s);
    if (s->include_depth == INCLUDE_LIMIT) {
        wb_problems_add(s->problems, WB_LOG_ERROR, here(s, s->line),
                        "includes are nested more than %d deep; does \"%s\" include itself?",
                        INCLUDE_LIMIT, path);
        return WB_FATAL;
    }
    return scan_file(s->source, s->arena, s->problems, path, here(s, s->line),
                     s->include_depth + 1, s->nesting);
}

static int at_include(scan *s)
{
    const char *start = s->at;
    if (!s->at_line_start)
        return 0;
    skip_blanks(s);
    int found = starts_with(s, "@include");
    if (!found)
        s->at = start;
    return found;
}

static int take_next(scan *s)
{
    if (at_include(s))
        return take_include(s);
    if (*s->at == '"')
        return take_string(s);
    if (starts_with(s, "/*"))
        return take_block_comment(s);
    if (*s->at == '#' || starts_with(s, "//"))
        take_line_comment(s);
    else if (strchr("{[()]}", *s->at))
        return nest(s);
    else if (is_number_start(s))
        return take_number(s);
    else if (is_word(*s->at))
        take_name(s);
    else
        take_once(s);
    return WB_OK;
}

static int scan_data(scan *s)
{
    if (memchr(s->at, '\0', (size_t)(s->end - s->at))) {
        wb_problems_add(s->problems, WB_LOG_ERROR, here(s, 0), "the file holds a NUL byte");
        return WB_FATAL;
    }
    while (s->at < s->end) {
        int result = take_next(s);
        if (result != WB_OK)
            return result;
        if (s->source->text.size > 2 * SIZE_LIMIT)
            break;
    }
    if (s->source->text.size > SIZE_LIMIT) {
        wb_problems_add(s->problems, WB_LOG_ERROR, here(s, 0),
                        "the configuration with its includes is larger than %zu KiB",
                        SIZE_LIMIT / 1024);
        return WB_FATAL;
    }
    wb_buffer *text = &s->source->text;
    if (text->size && text->data[text->size - 1] != '\n')
        emit(s, '\n');
    return WB_OK;
}

static int refuse(wb_problems *problems, wb_conf_origin at, const char *path, const char *reason)
{
    wb_problems_add(problems, WB_LOG_ERROR, at, "cannot read \"%s\": %s", path, reason);
    return WB_FATAL;
}

static int read_file(int fd, wb_buffer *data)
{
    char chunk[4096];
    ssize_t got;
    while ((got = read(fd, chunk, sizeof chunk)) != 0 && data->size <= SIZE_LIMIT) {
        if (got < 0 && errno != EINTR)
            return errno;
        if (got > 0)
            wb_buffer_put(data, chunk, (size_t)got);
    }
    explicit_bzero(chunk, sizeof chunk);
    return 0;
}

/* It names code to load, and so it is trusted like code. */
static const char *find_distrust(const struct stat *st, char reason[REASON_SIZE])
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        (void)snprintf(reason, REASON_SIZE,
                       "it names code to load, and belongs to uid %ld: it must belong to root%s; use chown",
                       (long)st->st_uid, geteuid() ? " or to the user that runs this" : "");
    else if (st->st_mode & (S_IWGRP | S_IWOTH))
        (void)snprintf(reason, REASON_SIZE,
                       "it names code to load, and its mode %04o lets others write it; use chmod go-w",
                       (unsigned)(st->st_mode & 07777));
    else
        return NULL;
    return reason;
}

static void close_file(void *fd)
{
    (void)close(*(const int *)fd);
}

static int load(wb_problems *problems, wb_conf_origin at, const char *path, wb_buffer *data)
{
    struct stat st;
    char reason[REASON_SIZE];
    wb_memory_held held;
    int result = WB_OK, error = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return refuse(problems, at, path, strerror(errno));
    wb_memory_hold(&held, close_file, &fd);
    if (fstat(fd, &st) != 0)
        result = refuse(problems, at, path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        result = refuse(problems, at, path, "it is not a regular file");
    else if (find_distrust(&st, reason))
        result = refuse(problems, at, path, reason);
    else if ((error = read_file(fd, data)) != 0)
        result = refuse(problems, at, path, strerror(error));
    else if (data->size > SIZE_LIMIT)
        result = refuse(problems, at, path, "it is larger than 1024 KiB");
    wb_memory_let_go(&held);
    close(fd);
    return result;
}

/* It may hold literal secrets. */
static void release_data(void *data)
{
    wb_buffer *buffer = data;
    if (buffer->data)
        explicit_bzero(buffer->data, buffer->size);
    wb_buffer_free(buffer);
}

static int scan_file(wb_conf_source *source, wb_arena *arena, wb_problems *problems,
                     const char *path, wb_conf_origin asked_at, int include_depth, int *nesting)
{
    wb_buffer data = { 0 };
    wb_memory_held held;
    wb_memory_hold(&held, release_data, &data);
    int result = load(problems, asked_at, path, &data);
    if (result == WB_OK && data.size) {
        scan s = { source, arena, problems, path, (const char *)data.data,
                   (const char *)data.data + data.size, NULL, 1, 1, include_depth, nesting };
        result = scan_data(&s);
    }
    wb_memory_let_go(&held);
    release_data(&data);
    return result;
}

int wb_conf_source_read(wb_conf_source *source, wb_arena *arena, const char *path,
                        wb_problems *problems)
{
    int nesting = 0;
    const char *file = wb_arena_copy(arena, path, strlen(path));
    int result = scan_file(source, arena, problems, file, (wb_conf_origin){ NULL, 0, 0 }, 0,
                           &nesting);
    wb_buffer_put(&source->text, "", 1);
    if (!source->line_count)
        remember_line(source, (wb_conf_origin){ file, 1, 1 });
    return result;
}

wb_conf_origin wb_conf_source_origin(const wb_conf_source *source, unsigned line)
{
    size_t index = line ? line - 1 : 0;
    return source->lines[index < source->line_count ? index : source->line_count - 1];
}

void wb_conf_source_free(wb_conf_source *source)
{
    if (source->text.data)
        explicit_bzero(source->text.data, source->text.size);
    wb_buffer_free(&source->text);
    free(source->lines);
    memset(source, 0, sizeof *source);
}

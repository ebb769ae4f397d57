/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"

/* A line is cut at this size: long enough for any error text, short enough for the stack. */
#define LINE_MAX_SIZE 4096

static atomic_int log_level = WB_LOG_INFO;
static atomic_int log_to = STDERR_FILENO;

typedef struct {
    char text[LINE_MAX_SIZE];
    size_t used;
} log_line;

static pthread_mutex_t writer_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two, and calls of the first */
static void (*writer)(void *argument, int level, const char *line, size_t size);
static void *writer_argument;

void wb_log_set_writer(void (*write_line)(void *argument, int level, const char *line, size_t size), void *argument)
{
    pthread_mutex_lock(&writer_lock);
    writer = write_line;
    writer_argument = argument;
    pthread_mutex_unlock(&writer_lock);
}

void wb_log_keep_stderr(void)
{
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept >= 0)
        atomic_store(&log_to, kept);
}

void wb_log_after_fork(void)
{
    pthread_mutex_init(&writer_lock, NULL);
}

/* @return 0: there is no writer. */
static int hand_over(int level, log_line *line)
{
    pthread_mutex_lock(&writer_lock);
    int has_writer = writer != NULL;
    line->text[line->used] = '\0';
    if (has_writer)
        writer(writer_argument, level, line->text, line->used);
    pthread_mutex_unlock(&writer_lock);
    return has_writer;
}

void wb_log_set_level(int level)
{
    atomic_store(&log_level, level);
}

static void put(log_line *line, const char *text, size_t size)
{
    size_t room = sizeof line->text - 1 - line->used; /* one byte stays for the newline */
    if (size > room)
        size = room;
    memcpy(line->text + line->used, text, size);
    line->used += size;
}

static void put_text(log_line *line, const char *text)
{
    put(line, text, strlen(text));
}

static int is_plain(const char *value)
{
    if (!*value)
        return 0;
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if (*c <= ' ' || *c == '"' || *c == '=' || *c == '\\' || *c == 0x7f)
            return 0;
    return 1;
}

static void put_quoted(log_line *line, const char *value)
{
    put(line, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
        char escaped[5];
        if (*c == '"' || *c == '\\')
            (void)snprintf(escaped, sizeof escaped, "\\%c", *c);
        else if (*c == '\n')
            (void)snprintf(escaped, sizeof escaped, "\\n");
        else if (*c < ' ' || *c == 0x7f)
            (void)snprintf(escaped, sizeof escaped, "\\x%02x", *c);
        else
            (void)snprintf(escaped, sizeof escaped, "%c", *c);
        put_text(line, escaped);
    }
    put(line, "\"", 1);
}

static void put_field(log_line *line, const char *name, const char *value)
{
    put(line, " ", 1);
    put_text(line, name);
    put(line, "=", 1);
    if (is_plain(value))
        put_text(line, value);
    else
        put_quoted(line, value);
}

void wb_log_write(int level, const char *text, const wb_field *fields, size_t count)
{
    static const char *const levels[] = { "error", "warning", "info", "debug" };
    log_line line;
    char now[WB_LOG_TIMESTAMP_SIZE];

    if (level > atomic_load_explicit(&log_level, memory_order_relaxed))
        return;
    line.used = 0;
    wb_clock_format_log(wb_clock_wall(), now);
    put_text(&line, now);
    put_field(&line, "level", levels[level & 3]);
    put_field(&line, "msg", text);
    for (size_t i = 0; i < count; i++)
        if (fields[i].value)
            put_field(&line, fields[i].name, fields[i].value);
    if (hand_over(level, &line))
        return;
    line.text[line.used++] = '\n';
    /* Nobody is left to be told when the log itself cannot be written. */
    if (write(atomic_load(&log_to), line.text, line.used) < 0)
        return;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/printable.h"
#include "core/base/repeats.h"

/* A line is cut at this size: long enough for any error text, short enough for the stack. */
#define LINE_MAX_SIZE WB_REPEATS_TEXT_MAX
/* Numbers below are what is opened next. */
#define KEPT_FROM 200

static atomic_int log_level = WB_LOG_INFO;
static atomic_int log_to = STDERR_FILENO;

/* What that leads to, since it was kept. A handler that closes descriptors closes this one as well, and the next to
 * have its number may be a database's file. */
static struct stat kept;
static atomic_int is_kept;

typedef struct {
    char text[LINE_MAX_SIZE];
    size_t used;
    size_t limit; /* one byte stays for the newline */
} log_line;

static pthread_mutex_t writer_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two, and calls of the first */
static void (*writer)(void *argument, int level, const char *line, size_t size);
static void *writer_argument;
static wb_repeats repeats = WB_REPEATS_INIT;

void wb_log_set_writer(void (*write_line)(void *argument, int level, const char *line, size_t size), void *argument)
{
    pthread_mutex_lock(&writer_lock);
    writer = write_line;
    writer_argument = argument;
    pthread_mutex_unlock(&writer_lock);
}

void wb_log_keep_stderr(void)
{
    int copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, KEPT_FROM);
    if (copy < 0)
        copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy < 0 || fstat(copy, &kept) != 0)
        return;
    atomic_store(&log_to, copy);
    atomic_store(&is_kept, 1);
}

static int leads_there(int descriptor)
{
    struct stat it;
    return fstat(descriptor, &it) == 0 && it.st_dev == kept.st_dev && it.st_ino == kept.st_ino;
}

/* @return -1: nothing does any more. */
static int find_descriptor(void)
{
    const int to = atomic_load(&log_to);
    if (!atomic_load(&is_kept) || leads_there(to))
        return to;
    return leads_there(STDERR_FILENO) ? STDERR_FILENO : -1;
}

/* Whoever held a lock of the program's own is not there either. */
static void drop_line(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)level, (void)line, (void)size;
}

void wb_log_after_fork(void)
{
    if (writer)
        writer = drop_line;
    pthread_mutex_init(&writer_lock, NULL);
    wb_repeats_forget(&repeats); /* the parent tells them */
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

/* ---- a line ------------------------------------------------------------------------------ */

static void begin(log_line *line)
{
    line->used = 0;
    line->limit = sizeof line->text - 1;
}

static void put(log_line *line, const char *text, size_t size)
{
    size_t room = line->limit - line->used;
    if (size > room)
        size = room;
    memcpy(line->text + line->used, text, size);
    line->used += size;
}

static void put_text(log_line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* A line is cut in front of a character, not within. */
static void put_piece(log_line *line, const char *piece)
{
    if (strlen(piece) > line->limit - line->used)
        line->limit = line->used;
    put_text(line, piece);
}

static int is_plain(const char *value)
{
    if (!*value)
        return 0;
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if (*c <= ' ' || *c == '"' || *c == '=' || *c == '\\' || *c >= 0x7f)
            return 0;
    return 1;
}

/* One that is cut has its second quote all the same: what stands behind it is not in it. */
static void put_quoted(log_line *line, const char *value)
{
    char piece[1 + WB_PRINTABLE_SIZE] = "\\";
    size_t left = strlen(value), step;
    if (line->limit - line->used < 2)
        line->limit = line->used;
    if (line->limit == line->used)
        return;
    put(line, "\"", 1);
    line->limit--;
    for (; (step = wb_printable_next(value, left, piece + 1)) != 0; value += step, left -= step)
        put_piece(line, *value == '"' || *value == '\\' ? piece : piece + 1);
    line->limit++;
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

static void put_time(log_line *line)
{
    char now[WB_LOG_TIMESTAMP_SIZE];
    begin(line);
    wb_clock_format_log(wb_clock_wall(), now);
    put_text(line, now);
}

static void write_line(int level, log_line *line)
{
    if (hand_over(level, line))
        return;
    line->text[line->used++] = '\n';
    /* Nobody is left to be told when the log itself cannot be written. */
    const int to = find_descriptor();
    if (to < 0 || write(to, line->text, line->used) < 0)
        return;
}

/* ---- repeats ----------------------------------------------------------------------------- */

/* Fields that tell one message from another, one try of it, or who made it. */
static int is_of_one(const char *name)
{
    static const char *const names[] = { "message_id", "session_id", "attempt", "attempts",
                                         "delayed_retry", "delay_ms", "worker" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

static void put_fields(log_line *line, int level, const char *text, const wb_field *fields, size_t count, int of_all)
{
    static const char *const levels[] = { "error", "warning", "info", "debug" };
    put_field(line, "level", levels[level & 3]);
    put_field(line, "msg", text);
    for (size_t i = 0; i < count; i++)
        if (fields[i].value && !(of_all && is_of_one(fields[i].name)))
            put_field(line, fields[i].name, fields[i].value);
}

/* What has no reason is no failure, and nobody floods the log with it but a handler that wants to. */
static int has_reason(const wb_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].value && strcmp(fields[i].name, "reason") == 0)
            return 1;
    return 0;
}

/* The time and the number round the text of a sum, which is never cut itself. */
#define SUM_SIZE (WB_LOG_TIMESTAMP_SIZE + sizeof " more_like_this=" + 20)

static int is_admitted(int level, const char *text, const wb_field *fields, size_t count)
{
    log_line line;
    if (level >= WB_LOG_DEBUG || !has_reason(fields, count))
        return 1;
    begin(&line);
    line.limit -= SUM_SIZE;
    put_fields(&line, level, text, fields, count, 1);
    return wb_repeats_admit(&repeats, level, line.text, line.used, wb_clock_monotonic());
}

static void sum_up(int64_t until)
{
    wb_repeated repeated;
    char more[24];
    while (wb_repeats_take(&repeats, until, &repeated)) {
        log_line line;
        put_time(&line);
        put(&line, repeated.text, repeated.size);
        (void)snprintf(more, sizeof more, "%lu", repeated.more);
        put_field(&line, "more_like_this", more);
        write_line(repeated.level, &line);
    }
}

void wb_log_sum_up(void)
{
    sum_up(wb_clock_monotonic());
}

void wb_log_settle(void)
{
    sum_up(WB_NEVER);
}

void wb_log_write(int level, const char *text, const wb_field *fields, size_t count)
{
    log_line line;
    if (level > atomic_load_explicit(&log_level, memory_order_relaxed))
        return;
    wb_log_sum_up();
    if (!is_admitted(level, text, fields, count))
        return;
    put_time(&line);
    put_fields(&line, level, text, fields, count, 0);
    write_line(level, &line);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log_line.h"
#include "core/base/log_sink.h"
#include "core/base/patience.h"
#include "core/base/repeats.h"

_Static_assert(WB_LOG_LINE_SIZE <= WB_REPEATS_TEXT_MAX, "what is written can be counted");

static atomic_int log_level = WB_LOG_INFO;
static atomic_int log_format = WB_LOG_TEXT;

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
    wb_log_sink_after_fork();
    wb_repeats_forget(&repeats); /* the parent tells them */
}

/* @return 0: there is no writer. */
static int hand_over(int level, const wb_log_line *line)
{
    if (!wb_log_lock(&writer_lock))
        return 1; /* somebody waits in there, perhaps this very thread */
    int has_writer = writer != NULL;
    if (has_writer)
        writer(writer_argument, level, line->text, line->used);
    pthread_mutex_unlock(&writer_lock);
    return has_writer;
}

void wb_log_set_level(int level)
{
    atomic_store(&log_level, level);
}

void wb_log_set_format(int format)
{
    atomic_store(&log_format, format);
}

/* @return 0: it is lost. */
static int put(int level, wb_log_line *line)
{
    wb_log_line_end(line);
    if (hand_over(level, line))
        return 1;
    line->text[line->used] = '\n';
    return wb_log_sink_write(line->text, line->used + 1);
}

/* Somebody reads again. */
static void tell_lost(void)
{
    const unsigned long lost = wb_log_sink_take_lost();
    wb_log_line line;
    char count[24];
    if (!lost)
        return;
    (void)snprintf(count, sizeof count, "%lu", lost);
    wb_log_line_begin(&line, atomic_load(&log_format), wb_clock_wall());
    wb_log_line_describe(&line, WB_LOG_WARNING, "lines were lost: nobody read the log", (const wb_field[]){ { "lines", count } }, 1, NULL);
    (void)put(WB_LOG_WARNING, &line);
}

static void write_line(int level, wb_log_line *line)
{
    if (put(level, line))
        tell_lost();
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

/* What has no reason is no failure, and nobody floods the log with it but a handler that wants to. */
static int has_reason(const wb_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].value && strcmp(fields[i].name, "reason") == 0)
            return 1;
    return 0;
}

static int is_admitted(int format, int level, const char *text, const wb_field *fields, size_t count)
{
    wb_log_line line;
    if (level >= WB_LOG_DEBUG || !has_reason(fields, count))
        return 1;
    wb_log_line_begin_rest(&line, format);
    wb_log_line_describe(&line, level, text, fields, count, is_of_one);
    return wb_repeats_admit(&repeats, level, line.text, line.used, wb_clock_monotonic());
}

/* In the form that its lines had. */
static void sum_up(int64_t until)
{
    wb_repeated repeated;
    char more[24];
    while (wb_repeats_take(&repeats, until, &repeated)) {
        wb_log_line line;
        wb_log_line_begin(&line, wb_log_line_format_of(repeated.text), wb_clock_wall());
        wb_log_line_put_rest(&line, repeated.text, repeated.size);
        (void)snprintf(more, sizeof more, "%lu", repeated.more);
        wb_log_line_put_field(&line, "more_like_this", more);
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

static void write_event(int level, const char *text, const wb_field *fields, size_t count)
{
    wb_log_line line;
    const int format = atomic_load_explicit(&log_format, memory_order_relaxed);
    wb_log_sum_up();
    if (!is_admitted(format, level, text, fields, count))
        return;
    wb_log_line_begin(&line, format, wb_clock_wall());
    wb_log_line_describe(&line, level, text, fields, count, NULL);
    write_line(level, &line);
}

void wb_log_write(int level, const char *text, const wb_field *fields, size_t count)
{
    if (level <= atomic_load_explicit(&log_level, memory_order_relaxed))
        write_event(level, text, fields, count);
}

void wb_log_answer(int level, const char *text, const wb_field *fields, size_t count)
{
    write_event(level, text, fields, count);
}

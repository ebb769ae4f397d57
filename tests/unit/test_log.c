/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: what a terminal would obey does not get there, and a flood is summed up without a loss.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_line.h"
#include "core/base/log_sink.h"
#include "core/base/patience.h"
#include "core/base/printable.h"
#include "core/base/repeats.h"

/* ---- the time ------------------------------------------------------------------------------ */

static int64_t the_time = 1000 * WB_SECOND;
static int is_kernels; /* where locks are waited for: the kernel ends that by its own clock, which begins when the machine starts */

int64_t __real_wb_clock_monotonic(void);
int64_t __wrap_wb_clock_monotonic(void);
int64_t __wrap_wb_clock_monotonic(void)
{
    return is_kernels ? __real_wb_clock_monotonic() : the_time;
}

/* ---- what was written -------------------------------------------------------------------- */

static char last[8192];
static unsigned long lines, sums, more;

static void take_line(void *argument, int level, const char *line, size_t size)
{
    const char *sum = strstr(line, " more_like_this=");
    (void)argument, (void)level;
    assert_int_equal(strlen(line), size);
    (void)snprintf(last, sizeof last, "%s", line);
    lines += !sum;
    sums += sum != NULL;
    more += sum ? strtoul(sum + strlen(" more_like_this="), NULL, 10) : 0;
}

static int set_up(void **state)
{
    (void)state;
    wb_log_set_writer(take_line, NULL);
    wb_log_settle();
    lines = sums = more = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_log_settle();
    wb_log_set_writer(NULL, NULL);
    wb_log_set_level(WB_LOG_INFO);
    wb_log_set_format(WB_LOG_TEXT);
    is_kernels = 0;
    return 0;
}

/* ---- escapes ------------------------------------------------------------------------------ */

static void test_escapes(void **state)
{
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        { "plain", "v=plain" },
        { "a b", "v=\"a b\"" },
        { "", "v=\"\"" },
        { "\"\\", "v=\"\\\"\\\\\"" },
        { "a\nb", "v=\"a\\nb\"" },
        { "\x1b[2J\t\x7f", "v=\"\\x1b[2J\\x09\\x7f\"" },
        { "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "v=\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"" },
        { "\xc2\x80 \xc2\x9b" "2J \xc2\x9f \xc2\xa0", "v=\"\\u0080 \\u009b2J \\u009f \xc2\xa0\"" },
        { "\x80\x9b", "v=\"\\x80\\x9b\"" },
        { "\xc0\x80", "v=\"\\xc0\\x80\"" },
        { "\xed\xa0\x80", "v=\"\\xed\\xa0\\x80\"" },
        { "\xf4\x90\x80\x80", "v=\"\\xf4\\x90\\x80\\x80\"" },
        { "\xe2\x82", "v=\"\\xe2\\x82\"" },
        { "\xe2\x80\xa8\xe2\x80\xa9", "v=\"\\u2028\\u2029\"" },
        { "\xe2\x80\xae" "txt \xe2\x81\xa6 \xe2\x81\xa9 \xe2\x80\x8e \xe2\x80\x8f \xd8\x9c",
          "v=\"\\u202etxt \\u2066 \\u2069 \\u200e \\u200f \\u061c\"" },
        { "\xe2\x80\xa6 \xe2\x80\x93", "v=\"\xe2\x80\xa6 \xe2\x80\x93\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wb_log_event(WB_LOG_INFO, "x", { "v", cases[i].text });
        const char *shown = strstr(last, "v=");
        assert_non_null(shown);
        assert_string_equal(shown, cases[i].shown);
    }
}

/* By the C library's eyes: text, and nothing in it that would be obeyed. */
static void assert_harmless(const char *line)
{
    wchar_t wide[sizeof last];
    size_t size = mbstowcs(wide, line, sizeof last);
    assert_true(size != (size_t)-1);
    for (size_t i = 0; i < size; i++) {
        assert_false(wide[i] < 0x20 || (wide[i] >= 0x7f && wide[i] <= 0x9f));
        assert_false(wide[i] == 0x2028 || wide[i] == 0x2029 || wide[i] == 0x61c);
        assert_false((wide[i] >= 0x202a && wide[i] <= 0x202e) || (wide[i] >= 0x2066 && wide[i] <= 0x2069));
        assert_false(wide[i] == 0x200e || wide[i] == 0x200f);
    }
}

static void test_any_bytes(void **state)
{
    static const char *const pieces[] = { "\xc2", "\x9b", "\xe2\x80", "\xae", "\xf0\x9f\x98", "\x80", "\xed\xa0", "\xd8\x9c",
                                          "a", "\\", "\"", "\n", "\x1b", "\xff", "\xe2\x82\xac", "\xc3\xbc" };
    char text[5000];
    (void)state;
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    srand(7);
    for (int round = 0; round < 2000; round++) {
        size_t wanted = (size_t)rand() % (round % 20 ? 60 : 4900), used = 0;
        while (used < wanted) {
            const char *piece = pieces[(size_t)rand() % (sizeof pieces / sizeof pieces[0])];
            memcpy(text + used, piece, strlen(piece));
            used += strlen(piece);
        }
        text[used] = '\0';
        wb_log_event(WB_LOG_INFO, "x", { "v", text }, { "w", text });
        assert_harmless(last);
    }
}

static void test_copy_ends_between_pieces(void **state)
{
    char to[16];
    (void)state;
    assert_int_equal(wb_printable_copy("ab\xe2\x82\xac", 5, to, 5), 2);
    assert_string_equal(to, "ab");
    assert_int_equal(wb_printable_copy("ab\xe2\x82\xac", 5, to, 6), 5);
    assert_int_equal(wb_printable_copy("\x1b", 1, to, 4), 0);
    assert_string_equal(to, "");
    assert_int_equal(wb_printable_copy("\x1b\0x", 3, to, 16), 9);
    assert_string_equal(to, "\\x1b\\x00x");
    assert_int_equal(wb_printable_copy("abc", 3, to, 1), 0);
}

/* ---- where it goes -------------------------------------------------------------------------- */

static size_t size_of(const char *path)
{
    struct stat it;
    assert_int_equal(stat(path, &it), 0);
    return (size_t)it.st_size;
}

/* Somebody has the number of a descriptor that was closed: nothing of the log gets into his file, wherever it can go still. */
static void test_no_file_of_others_is_written_to(void **state)
{
    char directory[] = "/tmp/waybill-log-XXXXXX", ours[100], theirs[100];
    const int before = dup(STDERR_FILENO);
    (void)state;
    wb_log_set_writer(NULL, NULL);
    assert_non_null(mkdtemp(directory));
    (void)snprintf(ours, sizeof ours, "%s/log", directory);
    (void)snprintf(theirs, sizeof theirs, "%s/data.db", directory);
    int file = open(ours, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(file), 0);
    wb_log_sink_keep_stderr();
    file = open(theirs, O_WRONLY | O_CREAT, 0600);
    wb_log_event(WB_LOG_INFO, "kept", { "endpoint", "orders" });
    for (int i = STDERR_FILENO + 1; i < 1024; i++) /* what a handler may do, and what is opened then */
        if (i != before && i != file)
            (void)dup2(file, i);
    const size_t kept = size_of(ours);
    wb_log_event(WB_LOG_INFO, "on standard error", { "endpoint", "orders" });
    const size_t behind = size_of(ours);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    wb_log_event(WB_LOG_INFO, "lost", { "endpoint", "orders" });
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    for (int i = STDERR_FILENO + 1; i < 1024; i++)
        (void)close(i);
    assert_true(kept > 0 && behind > kept);
    assert_int_equal(size_of(ours), behind);
    assert_int_equal(size_of(theirs), 0);
    assert_int_equal(unlink(ours) | unlink(theirs) | rmdir(directory), 0);
    wb_log_sink_keep_stderr();
}

/* Whoever writes a whole file finds it there, whatever was renamed. */
static void read_all(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY);
    ssize_t used = read(file, text, size - 1);
    assert_true(file >= 0 && used >= 0);
    text[used] = '\0';
    (void)close(file);
}

static void test_a_file_is_renewed(void **state)
{
    char directory[] = "/tmp/waybill-log-XXXXXX", path[100], old[100], text[1000];
    struct stat it;
    (void)state;
    wb_log_set_writer(NULL, NULL);
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/log", directory);
    (void)snprintf(old, sizeof old, "%s/log.1", directory);
    const mode_t before = umask(0077);
    assert_int_equal(wb_log_sink_try(path), 0);
    assert_int_not_equal(stat(path, &it), 0); /* trying makes nothing */
    assert_int_equal(wb_log_sink_open(path), 0);
    (void)umask(before);
    assert_int_equal(stat(path, &it), 0);
    assert_int_equal(it.st_mode & 07777, 0640);
    wb_log_event(WB_LOG_INFO, "first", { "endpoint", "orders" });
    assert_int_equal(rename(path, old), 0);
    wb_log_event(WB_LOG_INFO, "second", { "endpoint", "orders" });
    assert_int_equal(wb_log_sink_open(path), 0);
    wb_log_event(WB_LOG_INFO, "third", { "endpoint", "orders" });
    read_all(old, text, sizeof text);
    assert_true(strstr(text, "msg=first") && strstr(text, "msg=second") && !strstr(text, "msg=third"));
    read_all(path, text, sizeof text);
    assert_true(!strstr(text, "msg=second") && strstr(text, "msg=third"));
    wb_log_sink_close();
    wb_log_set_writer(take_line, NULL);
    assert_int_equal(unlink(path) | unlink(old) | rmdir(directory), 0);
}

static int number_of(const char *path)
{
    struct stat it, wanted;
    assert_int_equal(stat(path, &wanted), 0);
    for (int i = 3; i < 1024; i++)
        if (fstat(i, &it) == 0 && it.st_ino == wanted.st_ino && it.st_dev == wanted.st_dev)
            return i;
    fail_msg("nothing leads to %s", path);
    return -1;
}

/* What cannot be opened changes nothing; what a handler closed, and somebody else has, is not written to, nor closed: the
 * file is opened anew, once somebody writes or asks. */
static void test_a_file_that_is_gone(void **state)
{
    char directory[] = "/tmp/waybill-log-XXXXXX", ours[100], theirs[100], text[1000];
    int code = -1;
    (void)state;
    wb_log_set_writer(NULL, NULL);
    assert_non_null(mkdtemp(directory));
    (void)snprintf(ours, sizeof ours, "%s/log", directory);
    (void)snprintf(theirs, sizeof theirs, "%s/data.db", directory);
    assert_int_equal(wb_log_sink_try("/nonexistent/log"), ENOENT);
    assert_int_equal(wb_log_sink_try(directory), EISDIR);
    assert_int_equal(wb_log_sink_open(ours), 0);
    assert_int_equal(wb_log_sink_open("/nonexistent/log"), ENOENT);
    wb_log_event(WB_LOG_INFO, "kept", { "endpoint", "orders" });
    assert_false(wb_log_sink_was_closed(&code));
    int file = open(theirs, O_RDWR | O_CREAT, 0600), number = number_of(ours);
    assert_int_equal(dup2(file, number), number);
    wb_log_event(WB_LOG_INFO, "anew", { "endpoint", "orders" });
    assert_true(wb_log_sink_was_closed(&code) && code == 0);
    assert_false(wb_log_sink_was_closed(&code)); /* said once */
    assert_int_equal(wb_log_sink_open(ours), 0);
    wb_log_event(WB_LOG_INFO, "again", { "endpoint", "orders" });
    assert_int_equal(write(number, "!", 1), 1); /* it is his still */
    assert_int_equal(close(number_of(ours)), 0);
    assert_true(wb_log_sink_was_closed(&code) && code == 0); /* nobody had to write */
    read_all(ours, text, sizeof text);
    assert_true(strstr(text, "msg=kept") && strstr(text, "msg=anew") && strstr(text, "msg=again"));
    assert_int_equal(size_of(theirs), 1);
    wb_log_sink_close();
    (void)close(number), (void)close(file);
    wb_log_set_writer(take_line, NULL);
    assert_int_equal(unlink(ours) | unlink(theirs) | rmdir(directory), 0);
}

/* One that cannot be opened again: standard error has what follows, until it can. */
static void test_a_file_that_stays_away(void **state)
{
    char directory[] = "/tmp/waybill-log-XXXXXX", below[60], ours[100], other[100], text[1000];
    const int before = dup(STDERR_FILENO);
    int code = -1;
    (void)state;
    wb_log_set_writer(NULL, NULL);
    assert_non_null(mkdtemp(directory));
    (void)snprintf(below, sizeof below, "%s/below", directory);
    (void)snprintf(ours, sizeof ours, "%s/log", below);
    (void)snprintf(other, sizeof other, "%s/stderr", directory);
    assert_int_equal(mkdir(below, 0700), 0);
    int file = open(other, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    wb_log_sink_keep_stderr();
    assert_int_equal(wb_log_sink_open(ours), 0);
    assert_int_equal(close(number_of(ours)) | unlink(ours) | rmdir(below), 0);
    wb_log_event(WB_LOG_INFO, "elsewhere", { "endpoint", "orders" });
    assert_true(wb_log_sink_was_closed(&code) && code == ENOENT);
    assert_false(wb_log_sink_was_closed(&code));
    assert_int_equal(mkdir(below, 0700), 0);
    wb_log_event(WB_LOG_INFO, "there", { "endpoint", "orders" });
    assert_true(wb_log_sink_was_closed(&code) && code == 0);
    read_all(other, text, sizeof text);
    assert_true(strstr(text, "msg=elsewhere") && !strstr(text, "msg=there"));
    read_all(ours, text, sizeof text);
    assert_true(!strstr(text, "msg=elsewhere") && strstr(text, "msg=there"));
    wb_log_sink_close();
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    (void)close(before), (void)close(file);
    wb_log_sink_keep_stderr();
    wb_log_set_writer(take_line, NULL);
    assert_int_equal(unlink(ours) | rmdir(below) | unlink(other) | rmdir(directory), 0);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* A line is one object, and what it holds. The caller frees it. */
static json_t *parse_last(void)
{
    json_error_t error;
    json_t *object = json_loads(last, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        print_error("%s: %s\n", error.text, last);
    assert_true(json_is_object(object));
    return object;
}

static const char *member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void test_json(void **state)
{
    (void)state;
    wb_log_set_format(WB_LOG_JSON);
    wb_log_event(WB_LOG_WARNING, "message \"failed\"", { "endpoint", "orders" }, { "message_id", "a=b c" }, { "type", NULL },
                 { "reason", "no\nqueue" });
    json_t *object = parse_last(), *fields = json_object_get(object, "fields");
    assert_int_equal(json_object_size(object), 5);
    assert_int_equal(strlen(member(object, "time")), strlen("2026-01-01T12:00:00.000Z"));
    assert_string_equal(member(object, "level"), "warning");
    assert_string_equal(member(object, "endpoint"), "orders");
    assert_string_equal(member(object, "text"), "message \"failed\"");
    assert_int_equal(json_object_size(fields), 2);
    assert_string_equal(member(fields, "message_id"), "a=b c");
    assert_string_equal(member(fields, "reason"), "no\nqueue");
    json_decref(object);
    wb_log_write(WB_LOG_INFO, "stops", NULL, 0);
    assert_non_null(strstr(last, ",\"level\":\"info\",\"text\":\"stops\",\"fields\":{}}"));
    json_decref(parse_last());
}

static void test_json_escapes(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        { "plain gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "\"plain gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"" },
        { "\"\\/", "\"\\\"\\\\/\"" },
        { "a\nb\t\x1b[2J\x7f", "\"a\\u000ab\\u0009\\u001b[2J\\u007f\"" },
        { "\xc2\x80 \xc2\x9b" "2J", "\"\\u0080 \\u009b2J\"" },
        { "\x80\x9b \xc0\x80", "\"\\ufffd\\ufffd \\ufffd\\ufffd\"" },
        { "\xe2\x80\xa8 \xe2\x80\xae \xd8\x9c", "\"\\u2028 \\u202e \\u061c\"" },
    };
    (void)state;
    wb_log_set_format(WB_LOG_JSON);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wb_log_event(WB_LOG_INFO, "x", { "v", cases[i].text });
        const char *shown = strstr(last, "\"v\":");
        assert_non_null(shown);
        assert_memory_equal(shown + 4, cases[i].shown, strlen(cases[i].shown));
        json_decref(parse_last());
    }
}

static void fill(char *text, const char *filler, size_t wanted)
{
    size_t used = 0;
    for (; used + strlen(filler) <= wanted; used += strlen(filler))
        memcpy(text + used, filler, strlen(filler));
    text[used] = '\0';
}

/* However long anything is, and whatever it holds: one object, in a line. Seven has nothing in common with the six bytes of an
 * escape, nor with the fields' three and five: after 90 sizes each has ended at each place. */
static void test_json_is_cut_whole(void **state)
{
    static const char *const fillers[] = { "\xff", "\"", "\\", "x", "\n", "\xe2\x82\xac" };
    static char text[6000];
    (void)state;
    wb_log_set_format(WB_LOG_JSON);
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    for (size_t f = 0; f < sizeof fillers / sizeof fillers[0]; f++)
        for (size_t size = 500; size < 4300; size += 7) { /* between a sixth of a line and more than one */
            fill(text, fillers[f], size);
            wb_log_event(WB_LOG_INFO, size % 3 == 0 ? text : "x", { "endpoint", size % 3 == 1 ? text : "orders" },
                         { "v", text }, { size % 5 ? "w" : text, text });
            assert_true(strlen(last) < WB_LOG_LINE_SIZE);
            json_decref(parse_last());
            assert_harmless(last);
        }
}

/* And its sum has a number. */
static void test_json_sums_are_whole(void **state)
{
    static char reason[6000];
    (void)state;
    wb_log_set_format(WB_LOG_JSON);
    for (size_t size = 500; size < 4300; size += 19) {
        fill(reason, "\xff", size);
        for (int i = 0; i < 10; i++)
            wb_log_event(WB_LOG_ERROR, "x", { "reason", reason }, { "z", "z" });
        wb_log_settle();
        json_t *object = parse_last();
        assert_string_equal(member(json_object_get(object, "fields"), "more_like_this"), "5");
        json_decref(object);
        the_time += 2 * WB_SECOND;
    }
}

static void say(int level, const char *reason, int number);

/* A sum has the form of its lines, also when that changed meanwhile. */
static void test_json_is_summed_up(void **state)
{
    (void)state;
    wb_log_set_format(WB_LOG_JSON);
    for (int i = 0; i < 10; i++)
        say(WB_LOG_ERROR, "in JSON", i);
    wb_log_set_format(WB_LOG_TEXT);
    wb_log_settle();
    json_t *object = parse_last(), *fields = json_object_get(object, "fields");
    assert_string_equal(member(fields, "more_like_this"), "5");
    assert_string_equal(member(fields, "reason"), "in JSON");
    assert_null(member(fields, "message_id"));
    json_decref(object);
    for (int i = 0; i < 10; i++)
        say(WB_LOG_ERROR, "in text", i);
    wb_log_set_format(WB_LOG_JSON);
    wb_log_settle();
    assert_non_null(strstr(last, " reason=\"in text\" more_like_this=5"));
}

static void test_answers_have_no_level(void **state)
{
    const wb_field fields[] = { { "endpoint", "orders" } };
    (void)state;
    wb_log_set_level(WB_LOG_ERROR);
    wb_log_write(WB_LOG_INFO, "not asked for", fields, 1);
    assert_int_equal(lines, 0);
    wb_log_answer(WB_LOG_INFO, "since the start", fields, 1);
    assert_int_equal(lines, 1);
    assert_non_null(strstr(last, " level=info msg=\"since the start\" endpoint=orders"));
}

/* ---- repeats ------------------------------------------------------------------------------ */

static void say(int level, const char *reason, int number)
{
    char id[24];
    (void)snprintf(id, sizeof id, "id-%d", number);
    wb_log_event(level, "message moved to the error queue", { "endpoint", "orders" }, { "worker", number % 2 ? "1" : "0" },
                 { "message_id", id }, { "attempts", number % 2 ? "6" : "5" }, { "reason", reason });
}

static void test_a_flood_is_summed_up(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        say(WB_LOG_ERROR, "no queue \"nowhere\"", i);
    assert_int_equal(lines, WB_REPEATS_BURST);
    assert_int_equal(sums, 0);
    say(WB_LOG_ERROR, "another", 1); /* at once, whatever is counted */
    assert_int_equal(lines, WB_REPEATS_BURST + 1);
    wb_log_settle();
    assert_int_equal(sums, 1);
    assert_int_equal(more, 1000 - WB_REPEATS_BURST);
    assert_non_null(strstr(last, " level=error msg=\"message moved to the error queue\" endpoint=orders "
                                 "reason=\"no queue \\\"nowhere\\\"\" more_like_this=995"));
    assert_null(strstr(last, "id-"));
    wb_log_settle();
    assert_int_equal(sums, 1); /* once */
    say(WB_LOG_ERROR, "no queue \"nowhere\"", 1);
    the_time += 2 * WB_SECOND;
    wb_log_sum_up(); /* as whoever looks at the time does */
    assert_int_equal(sums, 2);
    say(WB_LOG_ERROR, "no queue \"nowhere\"", 2); /* it goes on */
    the_time += WB_SECOND;
    wb_log_event(WB_LOG_INFO, "whatever", { "endpoint", "orders" });
    assert_int_equal(sums, 3);
    the_time += 2 * WB_SECOND;
    say(WB_LOG_ERROR, "no queue \"nowhere\"", 3);
    assert_int_equal(lines, WB_REPEATS_BURST + 3);
    assert_int_equal(more, 1000 - WB_REPEATS_BURST + 2);
}

/* However long the reason is, each line ends with a whole field, and a sum with its number. */
static void test_a_long_reason_is_summed_up(void **state)
{
    static char reason[5000];
    static const char *const fillers[] = { "\xff", "\"", "\\", "x", "\xe2\x82\xac" };
    (void)state;
    for (size_t f = 0; f < sizeof fillers / sizeof fillers[0]; f++) {
        reason[0] = ' '; /* so that it wants quotes */
        for (size_t size = strlen(fillers[f]), used = 1; used + size < sizeof reason; used += size)
            memcpy(reason + used, fillers[f], size + 1);
        lines = sums = more = 0;
        for (int i = 0; i < 10; i++)
            say(WB_LOG_ERROR, reason, i);
        assert_int_equal(lines, WB_REPEATS_BURST);
        assert_int_equal(last[strlen(last) - 1], '"');
        wb_log_settle();
        assert_int_equal(sums, 1);
        assert_int_equal(more, 10 - WB_REPEATS_BURST);
        assert_non_null(strstr(last, "\" more_like_this=5"));
        assert_true(last[strlen(last) - strlen("5\" more_like_this=")] != '\\' || f == 2);
    }
}

static void test_what_is_never_counted(void **state)
{
    (void)state;
    wb_log_set_level(WB_LOG_DEBUG);
    for (int i = 0; i < 100; i++) {
        wb_log_event(WB_LOG_INFO, "no reason", { "endpoint", "orders" });
        say(WB_LOG_DEBUG, "debug", i);
    }
    assert_int_equal(lines, 200);
    for (int i = 0; i < 100; i++) { /* what differs in more than the message is no repeat */
        char rows[12];
        (void)snprintf(rows, sizeof rows, "%d", i);
        wb_log_event(WB_LOG_WARNING, "operations stay pending", { "rows", rows }, { "reason", "r" });
    }
    assert_int_equal(lines, 300);
    wb_log_set_level(WB_LOG_ERROR);
    for (int i = 0; i < 100; i++)
        say(WB_LOG_INFO, "not at this level", i);
    wb_log_settle();
    assert_int_equal(lines + sums, 300);
}

static wb_repeats table = WB_REPEATS_INIT;

static int admit(const char *text, int64_t now)
{
    return wb_repeats_admit(&table, WB_LOG_ERROR, text, strlen(text), now);
}

static unsigned long take(int64_t now)
{
    static wb_repeated taken;
    return wb_repeats_take(&table, now, &taken) ? taken.more : 0;
}

/* What a process counted is not told by its children, too. */
static void test_children_begin_anew(void **state)
{
    (void)state;
    for (int i = 0; i < WB_REPEATS_BURST; i++)
        assert_true(admit("before", WB_SECOND));
    assert_false(admit("before", WB_SECOND));
    wb_repeats_forget(&table);
    assert_int_equal(take(WB_NEVER), 0);
    assert_true(admit("before", WB_SECOND));
    wb_repeats_forget(&table);
}

/* Once a second, for as long as it goes on; a second without one, and the next is written. */
static void test_seconds(void **state)
{
    int64_t now = 5 * WB_SECOND;
    (void)state;
    for (int i = 0; i < WB_REPEATS_BURST; i++)
        assert_true(admit("r", now));
    assert_false(admit("r", now));
    assert_false(admit("r", now + WB_SECOND - 1));
    assert_int_equal(take(now + WB_SECOND - 1), 0);
    assert_int_equal(take(now + WB_SECOND), 2);
    assert_int_equal(take(now + WB_SECOND), 0);
    assert_false(admit("r", now + WB_SECOND + 1)); /* it goes on */
    assert_false(admit("r", now + 5 * WB_SECOND)); /* nobody asked meanwhile */
    assert_int_equal(take(now + 5 * WB_SECOND), 2);
    assert_true(admit("r", now + 6 * WB_SECOND));
}

/* More reasons than there are places: what is not counted is written. */
static void test_full_table(void **state)
{
    unsigned long written = 0, counted = 0, asked = 0, part;
    int64_t now = 100 * WB_SECOND;
    char text[40];
    (void)state;
    srand(3);
    for (int i = 0; i < 100000; i++, now += (int64_t)(rand() % 2000) * 1000) {
        (void)snprintf(text, sizeof text, "reason %d", rand() % (2 * WB_REPEATS_MAX));
        asked++;
        written += (unsigned long)admit(text, now);
        while ((part = take(now)) != 0)
            counted += part;
    }
    while ((part = take(WB_NEVER)) != 0)
        counted += part;
    assert_int_equal(written + counted, asked);
    assert_true(written < asked && counted > 0);
    assert_true(admit("", now));
}

static void *say_many(void *argument)
{
    for (int i = 0; i < 5000; i++)
        say(WB_LOG_WARNING, i % 3 ? "here" : (const char *)argument, i);
    return NULL;
}

static void test_threads(void **state)
{
    static char reasons[][2] = { "a", "b", "a", "c" };
    pthread_t threads[4];
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, say_many, reasons[i]), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    wb_log_settle();
    assert_int_equal(lines + more, 20000);
    assert_true(lines < 1000);
}

/* ---- nobody reads ------------------------------------------------------------------------- */

static char pipe_name[64];

/* @return its other end. */
static int open_pipe(void)
{
    (void)snprintf(pipe_name, sizeof pipe_name, "/tmp/waybill-log-%d", (int)getpid());
    assert_int_equal(mkfifo(pipe_name, 0600), 0);
    const int reader = open(pipe_name, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(wb_log_sink_open(pipe_name), 0);
    return reader;
}

/* *ret_told: how many were lost, by a line that says so. @return how many lines it holds. */
static unsigned long read_lines(int reader, unsigned long *ret_told)
{
    static char text[1 << 20];
    const ssize_t size = read(reader, text, sizeof text - 1);
    unsigned long count = 0;
    assert_true(size >= 0);
    text[size] = '\0';
    const char *told = strstr(text, "lines were lost: nobody read the log\" lines=");
    *ret_told = told ? strtoul(strchr(told, '=') + 1, NULL, 10) : 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count - (told != NULL);
}

static void *write_for_ever(void *argument)
{
    wb_log_event(WB_LOG_INFO, "somebody who waits", { "argument", argument });
    return NULL;
}

/* Who has to go on goes on, alone and behind somebody who waits; and nothing is lost that is not told. */
static void test_nobody_reads(void **state)
{
    pthread_t waiting;
    unsigned long told, told_before;
    const unsigned long said = 5000;
    (void)state;
    is_kernels = 1;
    wb_log_set_writer(NULL, NULL);
    const int reader = open_pipe();
    wb_log_set_patience(20 * WB_MILLISECOND);
    for (unsigned long i = 0; i < said; i++)
        wb_log_event(WB_LOG_INFO, "a line of those that fill a pipe", { "by", "the test" });
    assert_int_equal(pthread_create(&waiting, NULL, write_for_ever, (void *)(uintptr_t) "in a pipe"), 0);
    usleep(100000); /* it waits with the lock by now, mostly */
    wb_log_event(WB_LOG_INFO, "one that is lost", { "by", "the test" });
    wb_log_set_patience(10 * WB_SECOND);
    const unsigned long before = read_lines(reader, &told_before); /* also by who waited: he is the first to be taken */
    assert_true(before > 0 && before < said);
    assert_int_equal(pthread_join(waiting, NULL), 0);
    wb_log_event(WB_LOG_INFO, "and one that is read", { "by", "the test" });
    const unsigned long behind = read_lines(reader, &told);
    assert_int_equal(before + behind + told_before + told, said + 3);
    assert_true(told_before + told > 0);
    wb_log_set_patience(WB_NEVER);
    wb_log_sink_close();
    (void)close(reader);
    (void)unlink(pipe_name);
}

static void log_from_signal(int number)
{
    (void)number;
    wb_log_set_patience(20 * WB_MILLISECOND);
    wb_log_event(WB_LOG_INFO, "from a signal's handler", { "reason", "it ends the process" });
}

static void interrupt_itself(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)level, (void)line, (void)size;
    lines++;
    if (lines == 1)
        (void)raise(SIGUSR1);
}

/* It interrupts a thread that has the lock: its own. */
static void test_a_line_of_a_signal(void **state)
{
    (void)state;
    is_kernels = 1;
    (void)signal(SIGUSR1, log_from_signal);
    wb_log_set_writer(interrupt_itself, NULL);
    wb_log_event(WB_LOG_INFO, "interrupted", { "by", "the test" });
    wb_log_set_patience(WB_NEVER);
    (void)signal(SIGUSR1, SIG_DFL);
    assert_int_equal(lines, 1);
    wb_log_event(WB_LOG_INFO, "and another one", { "by", "the test" });
    assert_int_equal(lines, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_escapes),
        TEST(test_any_bytes),
        TEST(test_copy_ends_between_pieces),
        TEST(test_no_file_of_others_is_written_to),
        TEST(test_a_file_is_renewed),
        TEST(test_a_file_that_is_gone),
        TEST(test_a_file_that_stays_away),
        TEST(test_json),
        TEST(test_json_escapes),
        TEST(test_json_is_cut_whole),
        TEST(test_json_sums_are_whole),
        TEST(test_json_is_summed_up),
        TEST(test_answers_have_no_level),
        TEST(test_a_flood_is_summed_up),
        TEST(test_a_long_reason_is_summed_up),
        TEST(test_children_begin_anew),
        TEST(test_what_is_never_counted),
        TEST(test_seconds),
        TEST(test_full_table),
        TEST(test_threads),
        TEST(test_nobody_reads),
        TEST(test_a_line_of_a_signal),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}

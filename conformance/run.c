/* SPDX-License-Identifier: Apache-2.0
 *
 * The run: starts runners, prints what they report, and says what became of those that end
 * otherwise than they should. It never calls the plugin.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/kit.h"
#include "conformance/report.h"
#include "conformance/runner.h"
#include "conformance/tap.h"
#include "core/base/clock.h"

/* A runner that died without a report is found out after this time. */
#define LOOK_EVERY (50 * WB_MILLISECOND)

/* So many runners in a row could not even open what cases share: no other will. */
#define IN_VAIN_MAX 3

typedef struct run {
    wb_kit *kit; /* its number is that of the case that is concluded next */
    const wb_kit_book *book;
    size_t failed, skipped;
    unsigned in_vain; /* runners that tried no case */
    int is_over;      /* nothing more can be tried */

    /* the runner there is */
    pid_t pid;
    int reports;
    size_t place;      /* of the case it is at, or that it is to begin with */
    const char *stage; /* what it does besides running cases, for people */
    int64_t deadline;
    int is_told;    /* it has said its last word */
    wb_report last; /* which was this */
} run;

#define OPENING " while what cases share was opened"
#define BETWEEN " before this case began"
#define CLOSING " while what cases share was closed"

/* ---- what became of a case -------------------------------------------------------------- */

static void conclude(run *all, int is_ok, const char *skip)
{
    wb_tap_case(all->kit->out, is_ok, all->kit->number++, all->book->cases[all->place].name, skip);
    all->failed += !is_ok;
    all->skipped += skip != NULL;
}

static void conclude_as_told(run *all, const wb_report *verdict)
{
    conclude(all, verdict->kind != WB_REPORT_FAILED,
             verdict->kind == WB_REPORT_SKIPPED ? verdict->text : NULL);
}

static void note_end(const run *all, int status)
{
    char text[200];
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    if (WIFSIGNALED(status))
        (void)snprintf(text, sizeof text, "the process died%s: signal %d, SIG%s", all->stage,
                       WTERMSIG(status), name ? name : "?");
    else
        (void)snprintf(text, sizeof text, "the process ended%s, with exit status %d", all->stage,
                       WEXITSTATUS(status));
    wb_tap_note(all->kit->out, text);
}

static void note_hang(const run *all)
{
    char text[200];
    (void)snprintf(text, sizeof text, "it has not ended%s within %lld s", all->stage,
                   (long long)(all->kit->options->time_limit / WB_SECOND));
    wb_tap_note(all->kit->out, text);
}

static int is_opening(const run *all)
{
    return strcmp(all->stage, OPENING) == 0;
}

/* Where nothing was ever opened every case would say the same. */
static void give_up_if_in_vain(run *all, int was_first)
{
    if (is_opening(all) && (was_first || ++all->in_vain == IN_VAIN_MAX)) {
        wb_tap_bail_out(all->kit->out, all->is_told ? all->last.text : "no case can be tried");
        all->is_over = 1;
    }
}

/* ---- one runner ------------------------------------------------------------------------- */

static void begin_stage(run *all, const char *stage)
{
    all->stage = stage;
    all->deadline = wb_clock_monotonic() + all->kit->options->time_limit;
}

/* @return whether there is one. */
static int start_runner(run *all, size_t place)
{
    int ends[2];
    (void)fflush(NULL); /* or both processes would print it */
    all->place = place;
    all->is_told = 0;
    all->kit->printer = getpid();
    begin_stage(all, OPENING);
    all->pid = wb_report_open(ends) == 0 ? fork() : -1;
    if (all->pid == 0) {
        (void)close(ends[0]);
        all->kit->reporting = ends[1];
        wb_runner_main(all->kit, all->book, place);
    }
    if (all->pid < 0) {
        wb_tap_bail_out(all->kit->out, strerror(errno));
        all->failed++;
        return 0;
    }
    (void)close(ends[1]);
    all->reports = ends[0];
    return 1;
}

/* Whatever becomes of the runner now, that case has its line. */
static void go_on(run *all)
{
    all->place = wb_kit_next_wanted(all->kit, all->book, all->place + 1);
    begin_stage(all, BETWEEN);
}

static void take(run *all, const wb_report *report)
{
    if (report->kind == WB_REPORT_BEGINS) {
        all->place = report->place;
        all->in_vain = 0;
        begin_stage(all, "");
    } else if (report->kind == WB_REPORT_CLOSING)
        begin_stage(all, CLOSING);
    else if (report->kind == WB_REPORT_NOTE)
        wb_tap_note(all->kit->out, report->text);
    else if (report->is_last || report->kind == WB_REPORT_UNABLE) {
        all->last = *report; /* how the process ends decides, too */
        all->is_told = 1;
    } else {
        conclude_as_told(all, report);
        go_on(all);
    }
}

/* @return how many there were. */
static size_t take_all(run *all)
{
    wb_report report;
    size_t count = 0;
    for (; wb_report_take(all->reports, &report); count++)
        take(all, &report);
    return count;
}

/* Take what it reports until it is gone. @return its status; 0 and *ret_hangs: it was killed. */
static int watch_runner(run *all, int *ret_hangs)
{
    struct pollfd reports = { .fd = all->reports, .events = POLLIN };
    int status = 0;
    *ret_hangs = 0;
    while (waitpid(all->pid, &status, WNOHANG) == 0) {
        if (wb_clock_monotonic() >= all->deadline) {
            *ret_hangs = 1;
            (void)kill(all->pid, SIGKILL);
            (void)waitpid(all->pid, &status, 0);
            break;
        }
        const int is_there = poll(&reports, 1, (int)(LOOK_EVERY / WB_MILLISECOND)) > 0;
        const size_t taken = take_all(all);
        if (is_there && !taken && (reports.revents & POLLHUP))
            reports.fd = -1; /* closed: what is left to see is its end */
    }
    take_all(all);
    (void)close(all->reports);
    return *ret_hangs ? 0 : status;
}

static void run_from(run *all, size_t place)
{
    const int was_first = all->kit->number == 1;
    int hangs;
    if (!start_runner(all, place)) {
        all->is_over = 1;
        return;
    }
    const int status = watch_runner(all, &hangs);
    const int is_verdict = all->is_told && all->last.kind != WB_REPORT_UNABLE;
    if (is_verdict && (all->last.kind == WB_REPORT_FAILED || (status == 0 && !hangs))) {
        conclude_as_told(all, &all->last);
        return;
    }
    if (hangs)
        note_hang(all);
    else if (all->is_told && !is_verdict)
        wb_tap_note(all->kit->out, all->last.text);
    else
        note_end(all, status);
    conclude(all, 0, NULL);
    give_up_if_in_vain(all, was_first);
}

/* A library that starts threads when it is loaded has them here, and in no runner: a fork has one. */
static void note_threads(const run *all)
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && (entry = readdir(tasks)) != NULL)
        count += entry->d_name[0] != '.';
    if (tasks)
        (void)closedir(tasks);
    if (count > 1)
        wb_tap_note(all->kit->out, "loading the plugin has started threads, which the processes that run cases do not have: "
                                   "start them in create() or open()");
}

/* ---- all of them ------------------------------------------------------------------------ */

static size_t count_wanted(const wb_kit *kit, const wb_kit_book *book)
{
    size_t wanted = 0;
    for (size_t i = wb_kit_next_wanted(kit, book, 0); i < book->count; i = wb_kit_next_wanted(kit, book, i + 1))
        wanted++;
    return wanted;
}

static void summarize(const run *all)
{
    char text[300];
    (void)snprintf(text, sizeof text, "%.100s %.100s: %zu cases, %zu failed, %zu skipped", all->kit->plugin->name,
                   all->kit->plugin->version, all->kit->number - 1, all->failed, all->skipped);
    wb_tap_note(all->kit->out, text);
}

/* @return the first of the texts that no case has in its name, or NULL. */
static const char *find_mistyped(const wb_kit_book *book, const char *const *texts)
{
    for (; texts && *texts; texts++) {
        size_t i = 0;
        while (i < book->count && !strstr(book->cases[i].name, *texts))
            i++;
        if (i == book->count)
            return *texts;
    }
    return NULL;
}

/* A name that was mistyped may not look like success. */
static int is_choice(const wb_kit *kit, const wb_kit_book *book, size_t wanted)
{
    char text[300];
    const char *mistyped = find_mistyped(book, kit->options->only);
    if (!mistyped)
        mistyped = find_mistyped(book, kit->options->except);
    if (mistyped)
        (void)snprintf(text, sizeof text, "no case has \"%.200s\" in its name", mistyped);
    else
        (void)snprintf(text, sizeof text, "no case is left");
    if (mistyped || !wanted)
        wb_tap_bail_out(kit->out, text);
    return !mistyped && wanted;
}

size_t wb_kit_run(wb_kit *kit, const wb_kit_book *book)
{
    run all = { .kit = kit, .book = book };
    const size_t wanted = count_wanted(kit, book);
    if (!is_choice(kit, book, wanted))
        return 1;
    (void)signal(SIGCHLD, SIG_DFL);
    wb_tap_plan(kit->out, wanted);
    note_threads(&all);
    kit->number = 1;
    size_t place = wb_kit_next_wanted(kit, book, 0);
    while (place < book->count && !all.is_over) {
        run_from(&all, place);
        place = wb_kit_next_wanted(kit, book, all.place + 1);
    }
    if (!all.is_over)
        summarize(&all);
    return all.failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"

#define BAR_AFTER (1 * WB_SECOND)
#define BAR_EVERY (100 * WB_MILLISECOND)
#define LINE_AFTER (10 * WB_SECOND)
#define LINE_EVERY (10 * WB_SECOND)
#define BAR_WIDTH 30

static struct {
    const char *what, *unit; /* NULL: nothing has begun */
    uint64_t total;
    int is_bar, is_shown;
    int64_t due; /* when it is shown next */
} now_done;

/* Whoever shows a line for each beside the bar would tear it apart. */
static int can_have_bar(int prints)
{
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0 && !(prints && isatty(STDOUT_FILENO));
}

void cli_progress_begin(const char *what, const char *unit, uint64_t total, int prints)
{
    now_done.what = what;
    now_done.unit = unit;
    now_done.total = total;
    now_done.is_bar = can_have_bar(prints);
    now_done.is_shown = 0;
    now_done.due = wb_clock_monotonic() + (now_done.is_bar ? BAR_AFTER : LINE_AFTER);
}

static void write_count(uint64_t done)
{
    if (now_done.total)
        (void)fprintf(stderr, "%" PRIu64 " of %" PRIu64 " %s", done, now_done.total, now_done.unit);
    else
        (void)fprintf(stderr, "%" PRIu64 " %s", done, now_done.unit);
}

/* Back to the line's begin, and what stood there is gone. */
static void write_bar(uint64_t done)
{
    char bar[BAR_WIDTH + 1];
    const uint64_t total = now_done.total, known = done < total ? done : total;
    const size_t filled = total ? (size_t)((double)known / (double)total * BAR_WIDTH) : 0;
    memset(bar, '-', BAR_WIDTH);
    memset(bar, '#', filled);
    bar[BAR_WIDTH] = '\0';
    (void)fprintf(stderr, "\r\033[K%s ", now_done.what);
    if (total)
        (void)fprintf(stderr, "[%s] %3.0f %%  ", bar, (double)known / (double)total * 100);
    write_count(done);
}

static void write_line(uint64_t done)
{
    (void)fprintf(stderr, "waybill: %s: ", now_done.what);
    write_count(done);
    (void)fputs(" so far\n", stderr);
}

void cli_progress_set(uint64_t done)
{
    const int64_t now = now_done.what ? wb_clock_monotonic() : 0;
    if (!now_done.what || now < now_done.due)
        return;
    if (now_done.is_bar)
        write_bar(done);
    else
        write_line(done);
    (void)fflush(stderr);
    now_done.is_shown = 1;
    now_done.due = now + (now_done.is_bar ? BAR_EVERY : LINE_EVERY);
}

void cli_progress_tell(uint64_t done, uint64_t total)
{
    now_done.total = total;
    cli_progress_set(done);
}

void cli_progress_end(void)
{
    if (now_done.what && now_done.is_bar && now_done.is_shown)
        (void)fputs("\r\033[K", stderr);
    now_done.what = NULL;
}

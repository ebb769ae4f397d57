/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/runner.h"

#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "conformance/report.h"
#include "core/plugin/capability.h"

static void report(const wb_kit *kit, wb_report_kind kind, const char *text)
{
    wb_report_send(kit->reporting, kind, 0, 0, text);
}

static void begin_case(wb_kit *kit, const wb_kit_book *book, size_t place)
{
    kit->current = &book->cases[place];
    kit->is_failed = 0;
    kit->skip_reason[0] = '\0';
    wb_report_send(kit->reporting, WB_REPORT_BEGINS, place, 0, NULL);
}

static void open_book(wb_kit *kit, const wb_kit_book *book)
{
    wb_error error = { 0 };
    if (book->open && book->open(kit, &error) != WB_OK) {
        report(kit, WB_REPORT_UNABLE, error.text);
        _exit(EX_SOFTWARE);
    }
}

static void skip_what_is_not_declared(wb_kit *kit)
{
    uint64_t lacking = kit->current->needs & ~kit->plugin->capabilities;
    char names[200];
    if (lacking)
        wb_kit_skip(kit, "%s does not declare %s", kit->plugin->name,
                    wb_capabilities_text(lacking, ", ", names, sizeof names));
}

static void run_cleanups(wb_kit *kit)
{
    while (kit->cleanup_count) {
        kit->cleanup_count--;
        kit->cleanups[kit->cleanup_count].function(kit->cleanups[kit->cleanup_count].argument);
    }
}

static void run_case(wb_kit *kit)
{
    skip_what_is_not_declared(kit);
    if (!kit->skip_reason[0])
        kit->current->run(kit);
    run_cleanups(kit);
}

static wb_report_kind verdict_of(const wb_kit *kit)
{
    if (kit->is_failed)
        return WB_REPORT_FAILED;
    return kit->skip_reason[0] ? WB_REPORT_SKIPPED : WB_REPORT_PASSED;
}

void wb_runner_main(wb_kit *kit, const wb_kit_book *book, size_t first)
{
    size_t place = first, next;
    int is_last;
    wb_kit_end_with(kit->printer);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* which is the printer's, whatever a plugin writes */
    pthread_mutex_init(&kit->lock, NULL);
    kit->current = &book->cases[place];
    open_book(kit, book);
    for (;; kit->number++, place = next) {
        begin_case(kit, book, place);
        run_case(kit);
        next = wb_kit_next_wanted(kit, book, place + 1);
        is_last = kit->is_failed || next == book->count;
        if (is_last) {
            report(kit, WB_REPORT_CLOSING, NULL);
            book->close(kit);
        }
        wb_report_send(kit->reporting, verdict_of(kit), place, is_last, kit->skip_reason);
        if (is_last)
            exit(EX_OK); /* not _exit(): whatever the plugin does at exit belongs to it */
    }
}

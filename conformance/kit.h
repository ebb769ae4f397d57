/* SPDX-License-Identifier: Apache-2.0
 *
 * The conformance kits: what a plugin must do to be what it says it is, as cases that run
 * against the plugin a configuration file selects. One line of TAP a case.
 *
 * A case is straight-line code: what it opens is closed by the kit when it returns, so it may
 * return wherever a check fails. A case that needs a capability the plugin does not declare is
 * skipped, and says which; a capability that is declared and does not hold is a failure.
 *
 * Two processes. One prints and never calls the plugin (run.c). A child of it, the runner, runs
 * cases one after the other, so that they may share what is dear to open (runner.c); it ends
 * after one that failed, or with one in which the plugin died, exited or took longer than the
 * time limit, and another runner goes on with the next. So what is wrong with a plugin is the
 * failure of one case, and what it has left in its process is nobody else's.
 *
 * In the runner one thread runs the cases; checks may come from any thread of a case.
 */
#ifndef WB_CONFORMANCE_KIT_H
#define WB_CONFORMANCE_KIT_H

#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>

#include "conformance/business.h"
#include "core/base/error.h"
#include "core/base/host.h"
#include "core/endpoint/setup.h"

typedef struct wb_kit wb_kit;

typedef struct wb_kit_case {
    const char *name; /* what holds, in words: "an id that differs in case is another id" */
    uint64_t needs;   /* WB_CAP_x, all of them; without one it does not apply */
    void (*run)(wb_kit *kit);
} wb_kit_case;

/** The cases of a kit, and what they share. */
typedef struct wb_kit_book {
    const wb_kit_case *cases;
    size_t count;
    /** In a runner, before its first case. NULL: nothing.
     *  @return WB_OK, or the class, with `error` filled: then no case can be tried. */
    int (*open)(wb_kit *kit, wb_error *error);
    /** After its last one. */
    void (*close)(wb_kit *kit);
} wb_kit_book;

/** What the program's options say. */
typedef struct wb_kit_options {
    const char *crash_server; /* shell command that kills and restarts the server, or NULL */
    const char *const *only;  /* cases whose name contains one of these, behind which is NULL; or NULL: all */
    const char *const *except; /* but none whose name contains one of these, likewise */
    int64_t patience;         /* how long what should come is waited for */
    int64_t time_limit;       /* how long a case may take */
    const wb_business *business; /* how to write business data, or NULL */
} wb_kit_options;

#define WB_KIT_CLEANUPS 128

struct wb_kit {
    const wb_endpoint_setup *endpoint; /* what the file says */
    const wb_plugin *plugin;           /* the one under test */
    const wb_kit_options *options;
    FILE *out;     /* of TAP; the process that prints has it */
    pid_t printer; /* that one */
    int reporting; /* the runner's way to it (report.h) */

    /* the case that runs */
    size_t number; /* in the plan, from 1 on: no other case of the run has it */
    const wb_kit_case *current;
    int is_failed;
    char skip_reason[256];
    pthread_mutex_t lock; /* guards is_failed and the order of notes */
    struct {
        void (*function)(void *);
        void *argument;
    } cleanups[WB_KIT_CLEANUPS];
    size_t cleanup_count;
};

/** Run the cases in order and print TAP, plan first.
 *  @return the number of cases that failed. */
size_t wb_kit_run(wb_kit *kit, const wb_kit_book *book);

/* ---- for cases -------------------------------------------------------------------------- */

/** Note a failed check; the case goes on. @return `condition`. [any thread] */
int wb_kit_check(wb_kit *kit, int condition, const char *format, ...) WB_PRINTF(3, 4);

/** A line for people, whatever becomes of the case. [any thread] */
void wb_kit_note(wb_kit *kit, const char *format, ...) WB_PRINTF(2, 3);

/** Leave the (void) case when the condition does not hold. */
#define WB_KIT_REQUIRE(kit, condition, ...)                                                        \
    do {                                                                                           \
        if (!wb_kit_check((kit), (condition), __VA_ARGS__))                                        \
            return;                                                                                \
    } while (0)

/** The case has failed and cannot even end: a thread of it will never return. Ends the runner. */
_Noreturn void wb_kit_abandon(wb_kit *kit, const char *format, ...) WB_PRINTF(2, 3);

/** The case does not apply after all, for a reason that the capabilities do not show. */
void wb_kit_skip(wb_kit *kit, const char *format, ...) WB_PRINTF(2, 3);

/** Whether the plugin lacks an optional function; the case is then skipped and names it. */
int wb_kit_lacks(wb_kit *kit, int is_there, const char *function);

/** Whether the host takes a result for the server's fault (the table in waybill/sys/plugin.h):
 *  it waits, and no message counts an attempt. */
int wb_kit_is_servers_fault(int result, const wb_error *error);

/** Call when the case is over, last first. */
void wb_kit_defer(wb_kit *kit, void (*function)(void *), void *argument);

/** In a child that was just forked: it ends when its parent does, at the latest. */
void wb_kit_end_with(pid_t parent);

/** The place of the first case from `place` on that --only and --except choose; book->count: there is none. */
size_t wb_kit_next_wanted(const wb_kit *kit, const wb_kit_book *book, size_t place);

/** The kits. @return the number of cases that failed. */
size_t wb_transport_kit(const wb_endpoint_setup *endpoint, const wb_kit_options *options, FILE *out);
size_t wb_persistence_kit(const wb_endpoint_setup *endpoint, const wb_kit_options *options, FILE *out);

#endif

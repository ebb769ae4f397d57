/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/persistence/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/wires.h"

#define FAILED 3
#define UNTRACED 4
#define SYSTEM_CALL (SIGTRAP | 0x80)

/* What the child says on the board. */
#define CONNECTED 1
#define DONE 2

/* ---- the child -------------------------------------------------------------------------- */

void wb_tracer_next_stage(void)
{
    (void)raise(SIGSTOP);
}

/* It stops itself when it can be traced, before the call, and after it. */
_Noreturn static void be_victim(wb_kit *kit, pid_t parent, const wb_tracer *trace)
{
    wb_wires before;
    atomic_int *said = &wb_board_of(kit)->flag;
    wb_kit_end_with(parent);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(UNTRACED);
    wb_tracer_next_stage();
    wb_wires_remember(&before);
    wb_store *store = wb_store_again(kit, 0);
    wb_client *victim = store ? wb_client_open_on(kit, store) : NULL;
    if (victim)
        trace->prepare(victim);
    atomic_store(said, wb_wires_find(&before, NULL, 0) ? CONNECTED : 0);
    if (!victim || kit->is_failed)
        _exit(FAILED);
    wb_tracer_next_stage();
    int r = trace->call(victim);
    wb_tracer_next_stage();
    if (wb_client_check(victim, r, WB_OK, "make the call"))
        (void)atomic_fetch_or(said, DONE);
    _exit(kit->is_failed ? FAILED : 0);
}

/* ---- the tracer, in the nursery ----------------------------------------------------------- */

/* Whether the descriptor was opened so that each write goes to the disk. */
static int writes_through(pid_t thread, uint64_t fd)
{
    char path[64], line[64];
    unsigned flags = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)thread, (int)fd);
    FILE *info = fopen(path, "re");
    while (info && !flags && fgets(line, sizeof line, info))
        (void)sscanf(line, "flags: %o", &flags);
    if (info)
        (void)fclose(info);
    return (flags & O_DSYNC) != 0;
}

/* What is submitted to an io_uring cannot be seen. */
static int is_flush(pid_t thread, long number, const uint64_t *arguments)
{
    switch (number) {
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync:
    case SYS_syncfs:
    case SYS_io_uring_enter:
        return 1;
    case SYS_msync:
        return (arguments[2] & MS_SYNC) != 0;
    case SYS_pwritev2:
        return (arguments[5] & (RWF_DSYNC | RWF_SYNC)) != 0 || writes_through(thread, arguments[0]);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
        return writes_through(thread, arguments[0]);
    default:
        return 0;
    }
}

/* @return whether it is to be killed before this one. */
static int note_call(pid_t thread, wb_tracer *trace)
{
    struct __ptrace_syscall_info info = { 0 };
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return 0;
    if (++trace->made == trace->kill_at)
        return 1;
    trace->is_flushed |= is_flush(thread, (long)info.entry.nr, info.entry.args);
    return 0;
}

enum { BORN, PREPARES, CALLS };

/* Up to the call, and behind it, only the stages are to be seen: what turns to the system a thousand times to open a store
 * would stop as often. Not so with threads: one that waits when the call begins is to be seen in it. */
static long next_stop(int stage, int is_threaded)
{
    return stage == CALLS || is_threaded ? PTRACE_SYSCALL : PTRACE_CONT;
}

/* One of its threads has stopped. @return the signal that it is to be given, or 0. */
static int look_at(pid_t main, pid_t thread, int status, int *stage, wb_tracer *trace)
{
    const int signal = WSTOPSIG(status);
    if (signal == SYSTEM_CALL) {
        if (*stage == CALLS && note_call(thread, trace))
            (void)kill(main, SIGKILL);
        return 0;
    }
    if (signal == SIGSTOP && thread == main && (*stage)++ == BORN)
        trace->is_untraced |= ptrace(PTRACE_SETOPTIONS, main, 0,
                                     PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) != 0;
    if (trace->is_untraced)
        (void)kill(main, SIGKILL);
    return signal == SIGSTOP || signal == SIGTRAP ? 0 : signal; /* a new thread stops, too */
}

/* All of its threads, to its end. @return its status. */
static int follow(pid_t main, wb_tracer *trace)
{
    int status = 0, stage = BORN, is_threaded = 0;
    for (;;) {
        const pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno != EINTR)
            return 0;
        if (thread == main && !WIFSTOPPED(status))
            return status;
        if (thread > 0 && WIFSTOPPED(status)) {
            const int signal = look_at(main, thread, status, &stage, trace);
            is_threaded |= thread != main || status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8);
            (void)ptrace(next_stop(stage, is_threaded), thread, 0, (void *)(uintptr_t)signal);
        }
    }
}

static void trace_one(wb_kit *kit, void *argument)
{
    wb_tracer *trace = argument;
    const pid_t self = getpid();
    atomic_store(&wb_board_of(kit)->flag, 0);
    pid_t pid = fork();
    if (pid == 0)
        be_victim(kit, self, trace);
    const int status = pid > 0 ? follow(pid, trace) : 0;
    const int said = atomic_load(&wb_board_of(kit)->flag);
    trace->is_untraced |= WIFEXITED(status) && WEXITSTATUS(status) == UNTRACED;
    trace->is_connected = (said & CONNECTED) != 0;
    trace->is_killed = pid > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    trace->is_done = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && (said & DONE);
}

int wb_tracer_run(wb_kit *kit, wb_tracer *trace)
{
    if (!wb_nursery_do(kit, trace_one, trace, sizeof *trace))
        return 0;
    if (trace->is_untraced) {
        wb_kit_skip(kit, "a process and its threads may not be traced here");
        return 0;
    }
    /* not each run turns to the system as often as another */
    const int has_ended = trace->is_done && (!trace->kill_at || trace->made < trace->kill_at);
    return wb_kit_check(kit, has_ended || (trace->is_killed && trace->made >= trace->kill_at && trace->kill_at),
                        "the process that was to be interrupted has failed before");
}

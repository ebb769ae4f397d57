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
#define WRITES_THROUGH 2

/* ---- the child -------------------------------------------------------------------------- */

static int look_at_files(const wb_wires *before)
{
    int found = wb_wires_find(before, NULL, 0) ? CONNECTED : 0;
    for (int fd = 0; fd < WB_WIRES_MAX; fd++)
        if (!before->there[fd] && fcntl(fd, F_GETFL) > 0 && (fcntl(fd, F_GETFL) & O_DSYNC))
            found |= WRITES_THROUGH;
    return found;
}

/* It stops itself before the call and after it. */
_Noreturn static void be_victim(wb_kit *kit, pid_t parent, const wb_trace *trace)
{
    wb_wires before;
    wb_kit_end_with(parent);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(UNTRACED);
    wb_wires_remember(&before);
    wb_store *store = wb_store_again(kit, 0);
    wb_client *victim = store ? wb_client_open_on(kit, store) : NULL;
    if (victim)
        trace->prepare(victim);
    atomic_store(&wb_board_of(kit)->flag, look_at_files(&before));
    if (!victim || kit->is_failed)
        _exit(FAILED);
    (void)raise(SIGSTOP);
    int r = trace->call(victim);
    (void)raise(SIGSTOP);
    _exit(wb_client_check(victim, r, WB_OK, "make the call") ? 0 : FAILED);
}

/* ---- the tracer ------------------------------------------------------------------------- */

/* What is submitted to an io_uring cannot be seen. */
static int is_flush(long number, const uint64_t *arguments)
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
        return (arguments[5] & (RWF_DSYNC | RWF_SYNC)) != 0;
    default:
        return 0;
    }
}

/* @return whether it is to be killed before this one. */
static int note_call(pid_t pid, wb_trace *trace)
{
    struct __ptrace_syscall_info info = { 0 };
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return 0;
    if (++trace->made == trace->kill_at)
        return 1;
    trace->is_flushed |= is_flush((long)info.entry.nr, info.entry.args);
    return 0;
}

/* From one stop of its own to the next. @return the status it was last seen with. */
static int follow(pid_t pid, wb_trace *trace)
{
    int status = 0, signal = 0;
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, pid, 0, (void *)(uintptr_t)signal) != 0 || waitpid(pid, &status, 0) != pid ||
            !WIFSTOPPED(status) || WSTOPSIG(status) == SIGSTOP)
            return status;
        signal = WSTOPSIG(status) == SYSTEM_CALL || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        if (WSTOPSIG(status) == SYSTEM_CALL && note_call(pid, trace)) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return status;
        }
    }
}

static int trace_child(pid_t pid, wb_trace *trace)
{
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return status;
    if (WSTOPSIG(status) == SIGSTOP &&
        ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0)
        status = follow(pid, trace);
    if (!WIFSTOPPED(status))
        return status;
    /* it has made the call, or was stopped by what should not have come */
    (void)ptrace(PTRACE_CONT, pid, 0, NULL);
    (void)waitpid(pid, &status, 0);
    return status;
}

int wb_trace_run(wb_kit *kit, wb_trace *trace)
{
    trace->made = 0;
    trace->is_flushed = trace->is_connected = 0;
    const pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0)
        be_victim(kit, self, trace);
    const int status = pid > 0 ? trace_child(pid, trace) : 0;
    const int said = atomic_load(&wb_board_of(kit)->flag);
    trace->is_connected = (said & CONNECTED) != 0;
    trace->is_flushed |= (said & WRITES_THROUGH) != 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNTRACED) {
        wb_kit_skip(kit, "a process may not trace another one here");
        return 0;
    }
    /* not each run turns to the system as often as another */
    const int is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const int has_ended = WIFEXITED(status) && WEXITSTATUS(status) == 0 && (!trace->kill_at || trace->made < trace->kill_at);
    return wb_kit_check(kit, pid > 0 && (is_killed || has_ended),
                        "the process that was to be interrupted has failed before");
}

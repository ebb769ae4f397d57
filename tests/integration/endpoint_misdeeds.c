/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler may do wrong: command "misdo NAME" of the scripted handler. waybill-handler(7) has the
 * table, endpoint_misdeeds.t what the host does then. What only the file WB_TRACE can show is told there, in
 * lines that begin with the name.
 */
#include "config.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/endpoint_script.h"

extern char **environ;

typedef struct {
    wb_context *ctx;
    const wb_message *message;
    const char *argument;
} misdeed;

static void pause_for_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* ---- never back, or not alive ----------------------------------------------------------- */

static int spin(const misdeed *m)
{
    while (access(m->argument, F_OK) != 0)
        ;
    return WB_OK;
}

static int fault(const misdeed *m)
{
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)m;
    *page = 1;
    return WB_OK;
}

static int run_abort(const misdeed *m)
{
    (void)m;
    abort();
}

static __attribute__((noinline)) int go_deeper(volatile char *above, unsigned depth)
{
    volatile char frame[4096];
    frame[0] = frame[4095] = *above;
    return depth ? go_deeper(frame, depth - 1) + frame[4095] : 0;
}

static int recurse(const misdeed *m)
{
    volatile char seed = 0;
    (void)m;
    return go_deeper(&seed, 1u << 20); /* 4 GiB of stack */
}

static int ring_alarm(const misdeed *m)
{
    (void)m;
    setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { .tv_usec = 1000 } }, NULL);
    pause_for_ms(60000);
    return WB_OK;
}

/* ---- leaving ---------------------------------------------------------------------------- */

static void write_mark(void)
{
    script_trace("atexit\n");
}

static int call_exit(const misdeed *m)
{
    (void)atexit(write_mark);
    exit(atoi(m->argument));
}

static void *exit_beside(void *argument)
{
    exit(atoi(argument));
}

/* On a thread of its own, which is no handler's. */
static int call_exit_beside(const misdeed *m)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_beside, (void *)(uintptr_t)m->argument) != 0)
        return WB_RETRY;
    (void)pthread_join(thread, NULL);
    return WB_OK;
}

static int call_exit_now(const misdeed *m)
{
    _exit(atoi(m->argument));
}

static int call_c_exit_now(const misdeed *m)
{
    _Exit(atoi(m->argument));
}

static int call_quick_exit(const misdeed *m)
{
    quick_exit(atoi(m->argument));
}

static int call_errx(const misdeed *m)
{
    errx(atoi(m->argument), "cannot go on");
}

static int end_thread(const misdeed *m)
{
    (void)m;
    pthread_exit(NULL);
}

static int cancel_thread(const misdeed *m)
{
    (void)m;
    pthread_cancel(pthread_self());
    pthread_testcancel();
    pause_for_ms(1);
    return WB_OK;
}

/* ---- children --------------------------------------------------------------------------- */

static int wait_for_child(pid_t child, const char *name)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return WB_RETRY;
    script_trace("%s %d\n", name, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    return WB_OK;
}

static int fork_and_return(const misdeed *m)
{
    pid_t child = fork();
    if (child)
        return wait_for_child(child, "fork");
    wb_outgoing outgoing = { .destination = "sink", .type = "T.Child", .body = "child", .body_size = 5 };
    script_trace("child %d %d\n", wb_send(m->ctx, &outgoing), script_has_storage(m->ctx));
    return WB_OK;
}

static int fork_and_exit(const misdeed *m)
{
    pid_t child = fork();
    if (child == 0)
        exit(atoi(m->argument));
    return wait_for_child(child, "exits");
}

static int vfork_and_exit(const misdeed *m)
{
    static int code;
    code = atoi(m->argument);
    pid_t child = vfork();
    if (child == 0)
        _exit(code);
    return wait_for_child(child, "vfork");
}

/* What it inherits is written to a file. */
static int fork_and_exec(const misdeed *m)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "ls -l /proc/$$/fd >\"$0\"", m->argument, (char *)NULL);
        _exit(99);
    }
    return wait_for_child(child, "exec");
}

/* ---- somebody else's context -------------------------------------------------------------- */

static wb_context *_Atomic kept;

/* All functions, and what they answer. */
static void use(wb_context *ctx, const char *name)
{
    wb_outgoing outgoing = { .destination = "sink", .type = "T.Late", .body = "late", .body_size = 4 };
    wb_log(ctx, WB_LOG_INFO, "a line in a stranger's name");
    script_trace("%s %d %d %d %d %d %d %d %d \"%s\"\n", name, wb_send(ctx, &outgoing), wb_publish(ctx, &outgoing),
                 wb_reply(ctx, &outgoing), wb_fail(ctx, WB_RETRY, "late"), wb_discard(ctx, "late"),
                 wb_move_to(ctx, "sink", "late"), wb_retry_after(ctx, WB_SECONDS, "late"), script_has_storage(ctx),
                 wb_endpoint_name(ctx));
}

static int keep(const misdeed *m)
{
    kept = m->ctx;
    return WB_OK;
}

static int use_kept(const misdeed *m)
{
    (void)m;
    use(kept, "late");
    return WB_OK;
}

static void *use_elsewhere(void *ctx)
{
    use(ctx, "foreign");
    return NULL;
}

static int use_on_thread(const misdeed *m)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, use_elsewhere, m->ctx) != 0)
        return WB_RETRY;
    pthread_join(thread, NULL);
    return WB_OK;
}

static void *use_for_ever(void *ctx)
{
    for (;;) {
        wb_log(ctx, WB_LOG_INFO, "a line in a stranger's name");
        pause_for_ms(1);
    }
    return NULL;
}

static int leave_thread(const misdeed *m)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, use_for_ever, m->ctx) != 0)
        return WB_RETRY;
    pthread_detach(thread);
    return WB_OK;
}

/* ---- what is the process's, or the thread's ------------------------------------------------ */

static int unblock_signals(const misdeed *m)
{
    sigset_t none;
    (void)m;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    return WB_OK;
}

static int tell_mask(const misdeed *m)
{
    sigset_t mask;
    (void)m;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    script_trace("mask %d\n", sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGHUP) &&
                                 sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGUSR2));
    return WB_OK;
}

static void on_signal(int number)
{
    (void)number;
}

static int take_signals(const misdeed *m)
{
    (void)m;
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, on_signal);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_IGN);
    return WB_OK;
}

/* A comma for a point, where the machine has such a locale. */
static int change_locale(const misdeed *m)
{
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8", "C.UTF-8" };
    const char *set = NULL;
    (void)m;
    for (size_t i = 0; !set && i < sizeof names / sizeof names[0]; i++)
        set = setlocale(LC_ALL, names[i]);
    locale_t own = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    uselocale(own);
    script_trace("locale %s %d\n", set ? set : "none", own != (locale_t)0);
    return set ? WB_OK : WB_RETRY;
}

static int tell_locale(const misdeed *m)
{
    (void)m;
    script_trace("uselocale %d\n", uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
    return WB_OK;
}

static int change_directory(const misdeed *m)
{
    (void)m;
    return chdir("/") == 0 ? WB_OK : WB_RETRY;
}

static int change_umask(const misdeed *m)
{
    (void)m;
    (void)umask(0777);
    return WB_OK;
}

static int close_streams(const misdeed *m)
{
    (void)m;
    (void)close(STDOUT_FILENO);
    int filled = open("/dev/null", O_RDONLY); /* as SQLite does, which may be quicker than the host */
    (void)close(STDIN_FILENO);
    (void)close(STDERR_FILENO);
    return filled == STDOUT_FILENO ? WB_OK : WB_RETRY;
}

/* As one does before an exec, and forgets the fork: whatever leads to a file called run.log, which is the log's. */
static int close_log(const misdeed *m)
{
    char path[40], target[PATH_MAX];
    int closed = 0;
    (void)m;
    for (int i = STDERR_FILENO + 1; i < 1024; i++) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        ssize_t size = readlink(path, target, sizeof target - 1);
        target[size > 0 ? size : 0] = '\0';
        closed += size > 8 && strcmp(target + size - 8, "/run.log") == 0 && close(i) == 0;
    }
    return closed == 1 ? WB_OK : WB_RETRY;
}

/* As a copy of a file is made; POSIX takes from the process all locks that it has on it. */
static int copy_file(const misdeed *m)
{
    char data[4096];
    int file = open(m->argument, O_RDONLY);
    if (file < 0)
        return WB_RETRY;
    while (read(file, data, sizeof data) > 0)
        continue;
    return close(file) == 0 ? WB_OK : WB_RETRY;
}

static int write_to_stdout(const misdeed *m)
{
    (void)m;
    (void)printf("a handler writes where it likes\n");
    return fflush(stdout) == 0 ? WB_OK : WB_RETRY;
}

static int set_errno(const misdeed *m)
{
    (void)m;
    errno = ENOMEM;
    return WB_OK;
}

/* Until there are none; whoever opens something next has to wait for a restart. */
static int leak_descriptors(const misdeed *m)
{
    int count = 0;
    (void)m;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 128, 128 });
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        count++;
    script_trace("descriptors %d\n", count > 0 && errno == EMFILE);
    return WB_OK;
}

static int ask_for_memory(const misdeed *m)
{
    void *all = malloc(PTRDIFF_MAX);
    int r = all ? WB_OK : wb_fail(m->ctx, WB_RETRY, "out of memory");
    free(all);
    return r;
}

static int leak_memory(const misdeed *m)
{
    static char *_Atomic leaked;
    const size_t size = (size_t)64 << 20;
    char *memory = malloc(size);
    (void)m;
    if (!memory)
        return WB_RETRY;
    memset(memory, 'x', size);
    leaked = memory;
    return leaked[size - 1] == 'x' ? WB_OK : WB_RETRY;
}

/* ---- jumps, results ------------------------------------------------------------------------ */

static jmp_buf place;

static __attribute__((noreturn, noinline)) void jump(void)
{
    longjmp(place, 1);
}

/* To a place of its own, which is allowed. */
static int jump_inside(const misdeed *m)
{
    (void)m;
    if (setjmp(place) == 0)
        jump();
    return WB_OK;
}

static __attribute__((noinline)) int set_place(void)
{
    volatile char frame[65536];
    frame[0] = 0;
    return setjmp(place) + frame[0];
}

static int leave_place(const misdeed *m)
{
    (void)m;
    return set_place();
}

/* What longjmp() is in a module that is built with _FORTIFY_SOURCE. */
extern void __longjmp_chk(jmp_buf place, int value) __attribute__((noreturn));

static int jump_outside(const misdeed *m)
{
    (void)m;
    __longjmp_chk(place, 1);
}

static int fail_and_succeed(const misdeed *m)
{
    (void)wb_fail(m->ctx, WB_UNRECOVERABLE, "nobody hears of this");
    return WB_OK;
}

static int close_connection(const misdeed *m)
{
    return script_close(m->ctx, strcmp(m->argument, "all") == 0);
}

static int reset_connection(const misdeed *m)
{
    return script_reset(m->ctx);
}

static int leave_statement(const misdeed *m)
{
    return script_leave_unread(m->ctx, "select 1 union select 2");
}

static int send_unread(const misdeed *m)
{
    return script_send_unread(m->ctx, m->argument);
}

static int leave_behind(const misdeed *m)
{
    return script_leave_behind(m->ctx, m->argument);
}

static const struct {
    const char *name;
    int (*run)(const misdeed *m);
} misdeeds[] = {
    { "spin", spin },
    { "segv", fault },
    { "abort", run_abort },
    { "recurse", recurse },
    { "alarm", ring_alarm },
    { "exit", call_exit },
    { "thread-exit", call_exit_beside },
    { "_exit", call_exit_now },
    { "_Exit", call_c_exit_now },
    { "quick_exit", call_quick_exit },
    { "errx", call_errx },
    { "pthread_exit", end_thread },
    { "pthread_cancel", cancel_thread },
    { "fork", fork_and_return },
    { "fork-exit", fork_and_exit },
    { "vfork", vfork_and_exit },
    { "fork-exec", fork_and_exec },
    { "keep", keep },
    { "use-kept", use_kept },
    { "foreign", use_on_thread },
    { "thread", leave_thread },
    { "unblock", unblock_signals },
    { "tell-mask", tell_mask },
    { "signals", take_signals },
    { "locale", change_locale },
    { "tell-locale", tell_locale },
    { "chdir", change_directory },
    { "umask", change_umask },
    { "close-streams", close_streams },
    { "close-log", close_log },
    { "copy", copy_file },
    { "stdout", write_to_stdout },
    { "errno", set_errno },
    { "descriptors", leak_descriptors },
    { "memory", ask_for_memory },
    { "leak", leak_memory },
    { "longjmp", jump_inside },
    { "leave-place", leave_place },
    { "longjmp-outside", jump_outside },
    { "fail-ok", fail_and_succeed },
    { "close", close_connection },
    { "reset", reset_connection },
    { "statement", leave_statement },
    { "leave-behind", leave_behind },
    { "send-unread", send_unread },
};

int script_misdo(wb_context *ctx, const wb_message *message, const char *name, const char *argument)
{
    const misdeed m = { ctx, message, argument };
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++)
        if (strcmp(name, misdeeds[i].name) == 0)
            return misdeeds[i].run(&m);
    return wb_fail(ctx, WB_UNRECOVERABLE, "no such misdeed: %s", name);
}

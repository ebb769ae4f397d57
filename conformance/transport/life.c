/* SPDX-License-Identifier: Apache-2.0
 *
 * Instances and sessions: made, installed, opened, closed, and what they leave alone.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/transport/steps.h"
#include "core/base/arena.h"

#define INSTALLERS 4

static int is_declared(const wb_kit *kit, int mode)
{
    return (kit->plugin->capabilities & (WB_CAP_MODE_NONE << mode)) != 0;
}

/* ---- instances ------------------------------------------------------------------------- */

static void needs_no_network_to_be_made(wb_kit *kit)
{
    wb_wires before;
    int fds[1];
    wb_wires_remember(&before);
    for (int mode = WB_MODE_NONE; mode <= WB_MODE_TRANSACTION_SCOPE; mode++)
        if (is_declared(kit, mode))
            WB_KIT_REQUIRE(kit, wb_tk_instance_make(kit, WB_TK_MAIN, mode) != NULL,
                           "no instance in mode %d", mode);
    wb_kit_check(kit, wb_wires_find(&before, fds, 1) == 0, "create has connected");
}

static void install_may_be_repeated(wb_kit *kit)
{
    const wb_transport_ops *ops = wb_tk_of(kit)->ops;
    wb_error error = { 0 };
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, wb_tk_of(kit)->mode);
    if (!instance)
        return;
    for (int i = 0; i < 2; i++)
        if (!wb_tk_is_ok(kit, ops->install(instance->transport, &error), &error, "install"))
            return;
    wb_tk_is_ok(kit, ops->verify(instance->transport, &error), &error, "verify");
}

typedef struct installer {
    wb_kit *kit;
    wb_tk_instance *instance;
    pthread_t thread;
} installer;

static void *install_in_thread(void *argument)
{
    const installer *self = argument;
    wb_error error = { 0 };
    int result = wb_tk_of(self->kit)->ops->install(self->instance->transport, &error);
    wb_tk_is_ok(self->kit, result, &error, "install");
    return NULL;
}

static void install_may_run_at_once(wb_kit *kit)
{
    installer installers[INSTALLERS] = { 0 };
    size_t started = 0;
    for (; started < INSTALLERS; started++) {
        installer *one = &installers[started];
        one->kit = kit;
        one->instance = wb_tk_instance_make(kit, (int)(started % 2), wb_tk_of(kit)->mode);
        if (!one->instance || pthread_create(&one->thread, NULL, install_in_thread, one) != 0)
            break;
    }
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(installers[i].thread, NULL);
    wb_kit_check(kit, started == INSTALLERS, "only %zu installed at once", started);
}

/* As an upgrade does, while nobody receives. */
static void install_loses_nothing(wb_kit *kit)
{
    enum { COUNT = 10 };
    const wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_OTHER, tk->mode);
    if (!instance || !sender || !wb_tk_send_numbers(sender, instance->info.name, "k", 0, COUNT))
        return;
    int result = tk->ops->install(instance->transport, &error);
    if (!wb_tk_is_ok(kit, result, &error, "install"))
        return;
    wb_tk_session *s = wb_tk_open_for(instance, WB_SESSION_RECEIVE, COUNT);
    if (s && wb_tk_collect(s, COUNT) && wb_tk_expect_numbers(s, 0, 0, COUNT) && wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

/* ---- what is missing ------------------------------------------------------------------- */

/* Nothing is made, so nothing stays: the second time it says the same. */
static void expect_missing(wb_kit *kit, const wb_tk_instance *instance, const char *name)
{
    for (int i = 0; i < 2; i++) {
        wb_error error = { 0 };
        int result = instance->tk->ops->verify(instance->transport, &error);
        wb_kit_check(kit, result == WB_FATAL && error.result == result,
                     "verify of a queue that is not there returned %s", wb_result_name(result));
        wb_kit_check(kit, error.cause == WB_CAUSE_MISSING, "cause %d, not \"missing\": %s",
                     error.cause, error.text);
        wb_kit_check(kit, strstr(error.text, name) != NULL, "the queue is not named: %s",
                     error.text);
        if (!strstr(error.text, "install")) /* words are the author's */
            wb_kit_note(kit, "is it said what to do, \"run waybill install\"? %s", error.text);
    }
}

static void verify_says_what_is_missing(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE];
    wb_tk_instance *instance = wb_tk_instance_named(kit, wb_tk_own_name(kit, name), wb_tk_of(kit)->mode);
    if (instance)
        expect_missing(kit, instance, name);
}

/* What the cases below name besides; nobody receives from them. */
static char further[WB_TK_OWN_SIZE];
static const char *const further_list[] = { further };

static void with_audit_queue(wb_endpoint_info *info)
{
    info->audit_queue = further;
}

static void with_error_queue(wb_endpoint_info *info)
{
    info->error_queues = further_list;
    info->error_queue_count = 1;
}

static void (*const with_further[])(wb_endpoint_info *info) = { with_audit_queue, with_error_queue };
#define FURTHER (sizeof with_further / sizeof *with_further)

static void verify_misses_further_queues(wb_kit *kit)
{
    (void)wb_tk_own_name(kit, further);
    for (size_t i = 0; i < FURTHER; i++) {
        wb_tk_instance *instance =
            wb_tk_instance_changed(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, with_further[i]);
        if (!instance)
            return;
        expect_missing(kit, instance, further);
    }
}

/* By an endpoint whose queue it is, which is installed as any other. If it is of another kind than an endpoint's, and
 * cannot be, it is read where that can be done all the same. @return 0: failed. */
static int take_further(wb_kit *kit)
{
    const wb_tk *tk = wb_tk_of(kit);
    const int was_failed = kit->is_failed;
    wb_error error = { 0 };
    wb_tk_instance *reader = wb_tk_instance_named(kit, further, tk->mode);
    if (!reader)
        return 0;
    const int is_installed = tk->ops->install(reader->transport, &error) == WB_OK;
    wb_tk_session *s = wb_tk_open_for(reader, WB_SESSION_RECEIVE, 10);
    const int is_taken = s && wb_tk_collect(s, 2) && wb_tk_finish(s);
    if (s)
        wb_tk_close(s);
    if (is_installed || is_taken)
        return is_taken;
    kit->is_failed = was_failed;
    wb_kit_note(kit, "what was sent to \"%s\" stays there: %s", further, error.text);
    return 1;
}

/* Under names that stay, like those of the other queues; what is sent to them is taken again. */
static void installs_further_queues(wb_kit *kit)
{
    static const char *const names[FURTHER] = { "audit", "error.2" };
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    for (size_t i = 0; i < FURTHER; i++) {
        (void)snprintf(further, sizeof further, "%.220s.%s", tk->queues[WB_TK_MAIN], names[i]);
        wb_tk_instance *instance = wb_tk_instance_changed(kit, WB_TK_MAIN, tk->mode, with_further[i]);
        wb_tk_session *sender = wb_tk_sender(kit);
        if (!instance || !sender ||
            !wb_tk_is_ok(kit, tk->ops->install(instance->transport, &error), &error, "install") ||
            !wb_tk_is_ok(kit, tk->ops->verify(instance->transport, &error), &error, "verify") ||
            !wb_tk_send_numbers(sender, further, "k", 1, 2) || !take_further(kit))
            return;
    }
}

/* ---- sessions -------------------------------------------------------------------------- */

static void opens_in_each_mode(wb_kit *kit)
{
    static const uint32_t purposes[] = { WB_SESSION_SEND, WB_SESSION_RECEIVE,
                                         WB_SESSION_RECEIVE | WB_SESSION_SEND };
    for (int mode = WB_MODE_NONE; mode <= WB_MODE_TRANSACTION_SCOPE; mode++)
        for (size_t i = 0; is_declared(kit, mode) && i < sizeof purposes / sizeof *purposes; i++) {
            wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_OTHER, mode);
            wb_tk_session *s = instance ? wb_tk_open_for(instance, purposes[i], 1) : NULL;
            if (!s)
                return;
            wb_tk_close(s);
        }
}

static void starts_again(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, 10);
    if (!s || !wb_tk_sender(kit))
        return;
    for (size_t round = 1; round <= 3; round++) {
        wb_tk_close(s);
        if (!wb_tk_send_numbers(wb_tk_sender(kit), tk->queues[WB_TK_MAIN], "k", round, 1) ||
            !wb_tk_reopen(s) || !wb_tk_collect(s, 1) || !wb_tk_expect_numbers(s, 0, round, 1) ||
            !wb_tk_finish(s))
            return;
    }
    wb_tk_expect_empty(s);
}

/* ---- what is not the plugin's ---------------------------------------------------------- */

/* All that a session does in its life, as far as the plugin promises it. */
static void live_a_life(wb_tk_instance *instance)
{
    wb_error error = { 0 };
    wb_tk_session *s =
        instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, 10) : NULL;
    if (!s)
        return;
    (void)wb_tk_send_numbers(s, instance->info.name, "k", 1, 3);
    if (instance->tk->kit.plugin->capabilities & WB_CAP_MODE_RECEIVE_ONLY)
        (void)(wb_tk_collect(s, 3) && wb_tk_finish(s));
    else
        (void)wb_tk_take(s, 3, wb_tk_in(s->tk, WB_TK_QUIET), &error);
    wb_tk_close(s);
}

static wb_tk_instance *make_main(wb_kit *kit)
{
    return wb_tk_instance_make(kit, WB_TK_MAIN, wb_tk_of(kit)->mode);
}

typedef struct surroundings {
    char directory[4096];
    char locale[1024];
    mode_t mask;
    struct sigaction signals[NSIG];
    sigset_t blocked;
} surroundings;

static void look_around(surroundings *around)
{
    memset(around, 0, sizeof *around);
    if (!getcwd(around->directory, sizeof around->directory))
        around->directory[0] = '\0';
    (void)snprintf(around->locale, sizeof around->locale, "%s", setlocale(LC_ALL, NULL));
    around->mask = umask(077);
    (void)umask(around->mask);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &around->blocked);
    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, NULL, &around->signals[i]);
}

static void leaves_the_process_alone(wb_kit *kit)
{
    surroundings *around = wb_alloc_zero(2, sizeof *around);
    wb_kit_defer(kit, free, around);
    look_around(&around[0]);
    live_a_life(make_main(kit));
    look_around(&around[1]);
    wb_kit_check(kit, strcmp(around[0].directory, around[1].directory) == 0,
                 "the working directory has changed");
    wb_kit_check(kit, strcmp(around[0].locale, around[1].locale) == 0, "the locale has changed");
    wb_kit_check(kit, around[0].mask == around[1].mask, "the umask has changed");
    for (int i = 1; i < NSIG; i++) {
        wb_kit_check(kit, around[0].signals[i].sa_handler == around[1].signals[i].sa_handler,
                     "the handler of signal %d has changed", i);
        wb_kit_check(kit, sigismember(&around[0].blocked, i) == sigismember(&around[1].blocked, i),
                     "the mask of signal %d has changed", i);
    }
}

/* Both streams lead to a file while the session lives; what it logs goes through the host, whose
 * level lets errors through only. What it left in a buffer is written out and counts. */
static long long watch_streams(wb_kit *kit, FILE *file)
{
    struct stat what = { 0 };
    int saved[2] = { dup(STDOUT_FILENO), dup(STDERR_FILENO) };
    if (dup2(fileno(file), STDOUT_FILENO) >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0)
        live_a_life(make_main(kit));
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        (void)dup2(saved[i], STDOUT_FILENO + i);
        (void)close(saved[i]);
    }
    (void)fstat(fileno(file), &what);
    return (long long)what.st_size;
}

static void writes_nothing(wb_kit *kit)
{
    (void)fflush(NULL); /* what stands there from before is not written now */
    FILE *file = tmpfile();
    WB_KIT_REQUIRE(kit, file != NULL, "could not watch the streams");
    long long size = watch_streams(kit, file);
    wb_kit_check(kit, size == 0, "%lld bytes were written", size);
    (void)fclose(file);
}

static void leaves_its_configuration_alone(wb_kit *kit)
{
    const void *config = kit->endpoint->transport_config;
    size_t size = kit->plugin->config_size;
    void *copy = wb_alloc(size + 1);
    wb_kit_defer(kit, free, copy);
    memcpy(copy, config, size);
    live_a_life(make_main(kit));
    wb_kit_check(kit, memcmp(copy, config, size) == 0, "the configuration was written to");
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    for (int fd = 0; fd < WB_WIRES_MAX; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

/* The first life is not counted: what a library opens once for the process stays. */
static void closes_what_it_opened(wb_kit *kit)
{
    wb_tk_instance *instance = make_main(kit);
    live_a_life(instance);
    size_t before = open_descriptors();
    for (int i = 0; i < 3; i++)
        live_a_life(instance);
    wb_kit_check(kit, open_descriptors() <= before, "%zu descriptors were open, now %zu", before,
                 open_descriptors());
}

static size_t running_threads(void)
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && (entry = readdir(tasks)) != NULL)
        count += entry->d_name[0] != '.';
    if (tasks)
        (void)closedir(tasks);
    return count;
}

#define OPENS 3

/* One for each that failed is what it has left: a library may have one more for itself. What was joined or closed
 * by another thread may still be listed for a moment. */
static void expect_none_left(wb_kit *kit, size_t (*are_there)(void), size_t before, const char *what)
{
    const int64_t end = wb_tk_in(wb_tk_of(kit), wb_tk_of(kit)->patience);
    while (are_there() >= before + OPENS && wb_clock_monotonic() < end)
        wb_clock_pause(10 * WB_MILLISECOND, NULL);
    const size_t now = are_there();
    wb_kit_check(kit, now < before + OPENS, "there were %zu %s, now %zu", before, what, now);
}

/* Whoever finds out at open() says so; others do when they receive. */
static void fail_to_open(const wb_tk_instance *instance)
{
    wb_kit *kit = &instance->tk->kit;
    const wb_transport_ops *ops = instance->tk->ops;
    wb_transport_session *session = NULL;
    wb_error error = { 0 };
    int result = ops->open(instance->transport, WB_SESSION_RECEIVE | WB_SESSION_SEND, 10, &session, &error);
    if (result == WB_OK)
        ops->close(session);
    else
        wb_kit_check(kit, error.result == result && error.text[0], "open: returned %s without saying so to the host",
                     wb_result_name(result));
}

/* Hosts try again and again. As above the first try is not counted. */
static void failing_leaves_nothing(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE];
    wb_tk_instance *instance = wb_tk_instance_named(kit, wb_tk_own_name(kit, name), wb_tk_of(kit)->mode);
    if (!instance)
        return;
    fail_to_open(instance);
    const size_t descriptors = open_descriptors(), threads = running_threads();
    for (int i = 0; i < OPENS; i++)
        fail_to_open(instance);
    expect_none_left(kit, open_descriptors, descriptors, "descriptors");
    expect_none_left(kit, running_threads, threads, "threads");
}

/* ---- newer hosts ----------------------------------------------------------------------- */

/* The tables of a host that knows more, as far as this plugin can tell. */
typedef struct newer {
    struct {
        wb_host host;
        void *more[8];
    } host;
    struct {
        wb_endpoint_info info;
        void *more[8];
    } info;
    struct {
        wb_operation operation;
        void *more[8];
    } operation;
    wb_tk_letter letter;
    wb_tk *tk;
    wb_transport *transport;
} newer;

static void destroy_newer(void *argument)
{
    newer *made = argument;
    if (made->transport)
        made->tk->ops->destroy(made->transport);
    free(made);
}

static newer *make_newer(wb_kit *kit, const wb_tk_instance *instance)
{
    newer *made = wb_alloc(sizeof *made);
    memset(made, 0x5a, sizeof *made); /* beyond the fields there is anything */
    made->tk = wb_tk_of(kit);
    made->transport = NULL;
    made->host.host = instance->host.host;
    made->host.host.struct_size = sizeof made->host;
    made->info.info = instance->info;
    made->info.info.struct_size = sizeof made->info;
    wb_tk_write(kit, &made->letter, made->tk->queues[WB_TK_MAIN], "k", 1);
    made->operation.operation = made->letter.operation;
    made->operation.operation.struct_size = sizeof made->operation;
    wb_kit_defer(kit, destroy_newer, made);
    return made;
}

/* The host's functions cast their table to the instance they know: this one logs nothing. */
static void log_nothing(const wb_host *host, int level, const char *text, const wb_field *fields,
                        size_t count)
{
    (void)host;
    (void)level;
    (void)text;
    (void)fields;
    (void)count;
}

static void works_with_a_newer_host(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    wb_transport_session *session = NULL;
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, tk->mode);
    wb_tk_session *receiver = /* before anything is sent: it empties the queue */
        kit->plugin->capabilities & WB_CAP_MODE_RECEIVE_ONLY ? wb_tk_receiver(kit) : NULL;
    if (!instance)
        return;
    newer *host = make_newer(kit, instance);
    host->host.host.log = log_nothing;
    int result = tk->ops->create(&host->host.host, &host->info.info,
                                 kit->endpoint->transport_config, &host->transport, &error);
    if (!wb_tk_is_ok(kit, result, &error, "create"))
        return;
    if (!wb_tk_is_ok(kit, tk->ops->verify(host->transport, &error), &error, "verify"))
        return;
    result = tk->ops->open(host->transport, WB_SESSION_SEND, 1, &session, &error);
    if (!wb_tk_is_ok(kit, result, &error, "open"))
        return;
    wb_operation *operation = &host->operation.operation;
    result = tk->ops->send(session, &operation, 1, wb_tk_in(tk, tk->patience), &error);
    wb_tk_is_ok(kit, result, &error, "send");
    wb_kit_check(kit, operation->result == WB_OK, "the message was not sent");
    tk->ops->close(session);
    if (receiver && wb_tk_collect(receiver, 1))
        wb_tk_finish(receiver);
}

const wb_kit_case wb_tk_life_cases[] = {
    { "create needs no connection, in any mode declared", 0, needs_no_network_to_be_made },
    { "install may be repeated, then verify agrees", 0, install_may_be_repeated },
    { "four instances install at once", 0, install_may_run_at_once },
    { "install over messages that wait loses none", WB_CAP_MODE_RECEIVE_ONLY, install_loses_nothing },
    { "verify says what is missing, and makes nothing", WB_CAP_MODE_RECEIVE_ONLY,
      verify_says_what_is_missing },
    { "verify misses the audit queue, and each further error queue", WB_CAP_MODE_RECEIVE_ONLY,
      verify_misses_further_queues },
    { "install makes the audit queue, and further error queues", WB_CAP_MODE_RECEIVE_ONLY,
      installs_further_queues },
    { "sessions open in each mode and for each purpose", 0, opens_in_each_mode },
    { "a session that is closed and opened again finds what was sent meanwhile",
      WB_CAP_MODE_RECEIVE_ONLY, starts_again },
    { "directory, umask, locale and signals stay as they were", 0, leaves_the_process_alone },
    { "nothing is written to standard output or error", 0, writes_nothing },
    { "the configuration is not written to", 0, leaves_its_configuration_alone },
    { "close leaves no descriptor open", 0, closes_what_it_opened },
    { "an open of a queue that is not there leaves no descriptor and no thread", WB_CAP_MODE_RECEIVE_ONLY,
      failing_leaves_nothing },
    { "a newer host's larger tables do no harm", 0, works_with_a_newer_host },
};
WB_TK_CASES(life);

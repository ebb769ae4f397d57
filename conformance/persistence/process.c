/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the process belongs to the host. What a plugin must leave alone is
 * noted before it makes its first instance, and looked at when the other cases of its runner are
 * done.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/persistence/persistence.h"

/* ---- a life ------------------------------------------------------------------------------ */

static void say_nothing(const wb_host *host, int level, const char *text, const wb_field *fields,
                        size_t count)
{
    (void)host, (void)level, (void)text, (void)fields, (void)count;
}

static void use_store(wb_kit *kit, wb_store *store)
{
    wb_client client = { .kit = kit, .ops = store->ops, .store = store };
    wb_claim claim = WB_CLAIM("order-1");
    if (store->ops->install(store->instance, &client.error) != WB_OK ||
        store->ops->verify(store->instance, &client.error) != WB_OK ||
        store->ops->open(store->instance, &client.session, &client.error) != WB_OK)
        return;
    for (uint64_t n = 1; n <= 2; n++) /* the second one is refused */
        if (wb_client_begin(&client, WB_BATCH(n), &claim, 1) == WB_OK)
            (void)wb_client_commit(&client, WB_BATCH(1), "operations", 10);
    (void)wb_client_mark(&client, WB_BATCH(1), NULL, 0);
    wb_client_close(&client);
}

/* ---- what is the process's -------------------------------------------------------------- */

static mode_t get_umask(void)
{
    mode_t mask = umask(077);
    (void)umask(mask);
    return mask;
}

void wb_process_note(wb_process *process)
{
    memset(process, 0, sizeof *process);
    if (!getcwd(process->directory, sizeof process->directory))
        process->directory[0] = '\0';
    process->mask = get_umask();
    (void)snprintf(process->locale, sizeof process->locale, "%s", setlocale(LC_ALL, NULL));
    for (int i = 1; i < WB_PROCESS_SIGNALS; i++)
        (void)sigaction(i, NULL, &process->signals[i]);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &process->blocked);
}

static int is_same_action(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_flags & SA_SIGINFO ? a->sa_sigaction == b->sa_sigaction
                                    : a->sa_handler == b->sa_handler;
}

static void leaves_the_process_alone(wb_kit *kit)
{
    const wb_process *before = &((wb_stores_kit *)kit)->process;
    const int has_outbox = (kit->plugin->capabilities & WB_CAP_OUTBOX) != 0;
    wb_store *store = has_outbox && wb_client_open(kit, 0) ? wb_store_again(kit, 0) : NULL;
    wb_process now;
    if (store)
        use_store(kit, store);
    wb_process_note(&now);
    wb_kit_check(kit, strcmp(before->directory, now.directory) == 0, "the working directory is \"%s\" now",
                 now.directory);
    wb_kit_check(kit, before->mask == now.mask, "the umask is %03o now", (unsigned)now.mask);
    wb_kit_check(kit, strcmp(before->locale, now.locale) == 0, "the locale is \"%s\" now", now.locale);
    for (int i = 1; i < WB_PROCESS_SIGNALS; i++) {
        wb_kit_check(kit, is_same_action(&before->signals[i], &now.signals[i]),
                     "signal %d is handled otherwise than before", i);
        wb_kit_check(kit, sigismember(&before->blocked, i) == sigismember(&now.blocked, i),
                     "signal %d is blocked otherwise than before", i);
    }
}

/* ---- what a session must give back ------------------------------------------------------- */

static size_t count_entries(const char *directory)
{
    size_t count = 0;
    DIR *entries = opendir(directory);
    while (entries && readdir(entries))
        count++;
    if (entries)
        (void)closedir(entries);
    return count;
}

static void use_session(wb_kit *kit, uint64_t n)
{
    char id[24];
    wb_client *client = wb_client_open(kit, 0);
    (void)snprintf(id, sizeof id, "order-%u", (unsigned)n);
    if (!client)
        return;
    (void)wb_client_stores(client, WB_BATCH(n), id, "operations");
    wb_client_close(client);
}

/* Once to warm up: a library may keep something for good. */
static void sessions_give_back(wb_kit *kit)
{
    enum { TIMES = 20 };
    use_session(kit, 1);
    size_t files = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    for (uint64_t n = 2; n < 2 + TIMES; n++)
        use_session(kit, n);
    size_t files_now = count_entries("/proc/self/fd"), threads_now = count_entries("/proc/self/task");
    wb_kit_check(kit, files_now <= files, "%d sessions left %zu descriptors open", TIMES,
                 files_now - files);
    wb_kit_check(kit, threads_now <= threads, "%d sessions left %zu threads running", TIMES,
                 threads_now - threads);
}

/* ---- what a newer host adds -------------------------------------------------------------- */

/* Tables only grow: what a plugin does not know is behind what it knows. */
static void larger_tables(wb_kit *kit)
{
    wb_claim claims[] = { WB_CLAIM("order-1"), WB_CLAIM("order-2") };
    struct {
        wb_begin begin;
        unsigned char more[64];
    } newer_begin = { .begin = { .struct_size = sizeof newer_begin,
                                 .batch = WB_BATCH(1),
                                 .claims = claims,
                                 .claim_count = 2 } };
    struct {
        wb_commit commit;
        unsigned char more[64];
    } newer_commit = { .commit = { .struct_size = sizeof newer_commit,
                                   .batch = WB_BATCH(1),
                                   .operations = "operations",
                                   .operations_size = 10,
                                   .released = claims + 1,
                                   .released_count = 1 } };
    wb_client *a = wb_client_open(kit, 0);
    memset(newer_begin.more, 0xff, sizeof newer_begin.more);
    memset(newer_commit.more, 0xff, sizeof newer_commit.more);
    if (!a || !wb_client_check(a, a->ops->begin(a->session, &newer_begin.begin, &a->error), WB_OK, "begin"))
        return;
    int r = a->ops->commit(a->session, &newer_commit.commit, &a->error);
    wb_client_check(a, r, WB_OK, "commit");
    wb_client_finds_owner(a, "order-1", 7, WB_BATCH(1));
    wb_client_finds_owner(a, "order-2", 7, 0);
    wb_client_finds_pending(a, WB_BATCH(1), "operations", 10);
}

/* ---- standard streams -------------------------------------------------------------------- */

/* The log is the host's; it is silent here, so that all that comes is the plugin's own. */
static void leaves_streams_alone(wb_kit *kit)
{
    char byte;
    FILE *caught = tmpfile();
    wb_store *store = wb_store_again(kit, 0);
    wb_client *look = wb_client_open(kit, 0);
    int saved[2] = { fcntl(1, F_DUPFD_CLOEXEC, 3), fcntl(2, F_DUPFD_CLOEXEC, 3) };
    WB_KIT_REQUIRE(kit, caught && store && look && saved[0] >= 0 && saved[1] >= 0, "nothing to try it with");
    (void)fflush(NULL);
    store->host.host.log = say_nothing;
    for (int i = 0; i < 2; i++)
        (void)dup2(fileno(caught), i + 1);
    use_store(kit, store);
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        (void)dup2(saved[i], i + 1);
        (void)close(saved[i]);
    }
    wb_kit_check(kit, pread(fileno(caught), &byte, 1, 0) == 0, "it writes to stdout or stderr");
    (void)fclose(caught);
    wb_client_finds_owner(look, "order-1", 7, WB_BATCH(1));
}

static const wb_kit_case cases[] = {
    { "larger tables of a newer host are taken", WB_CAP_OUTBOX, larger_tables },
    { "nothing is written to stdout and stderr", WB_CAP_OUTBOX, leaves_streams_alone },
    { "closed sessions leave no descriptors and no threads", WB_CAP_OUTBOX, sessions_give_back },
    { "directory, umask, locale and signals are as they were", 0, leaves_the_process_alone },
};
const wb_kit_group wb_cases_process = WB_KIT_GROUP(cases);

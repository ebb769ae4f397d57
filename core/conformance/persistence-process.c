/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the process belongs to the host. What a plugin must leave alone is
 * noted before it makes its first instance, and looked at when all other cases are done.
 */
#include "config.h"

#include <dirent.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/conformance/persistence.h"

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
    wb_process now;
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

static const wb_kit_case cases[] = {
    { "closed sessions leave no descriptors and no threads", WB_CAP_OUTBOX, sessions_give_back },
    { "directory, umask, locale and signals are as they were", 0, leaves_the_process_alone },
};
const wb_kit_group wb_cases_process = WB_KIT_GROUP(cases);

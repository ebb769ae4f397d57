/* SPDX-License-Identifier: Apache-2.0
 *
 * Strangers: processes in which the plugin has not run. What it keeps in memory it does not have
 * there, and locks that it shares with its own threads say nothing.
 */
#include "config.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/persistence/persistence.h"

typedef struct strangers {
    wb_stranger_fn live;
    unsigned count;
    unsigned good; /* filled: so many did what they were told */
} strangers;

/* That it has done it it says itself: a plugin may end a process with any status. */
_Noreturn static void be_stranger(wb_kit *kit, pid_t nursery, const strangers *all, unsigned which)
{
    wb_kit_end_with(nursery);
    wb_store *store = wb_store_again(kit, 0);
    wb_client *client = store ? wb_client_open_on(kit, store) : NULL;
    if (client)
        all->live(client, which, wb_board_of(kit));
    if (client)
        wb_client_close(client);
    if (store)
        store->ops->destroy(store->instance);
    if (!kit->is_failed)
        (void)atomic_fetch_add(&wb_board_of(kit)->done, 1);
    _exit(kit->is_failed != 0);
}

static void make_strangers(wb_kit *kit, void *argument)
{
    strangers *all = argument;
    const pid_t self = getpid();
    unsigned ended = 0;
    int status;
    atomic_store(&wb_board_of(kit)->done, 0);
    for (unsigned i = 0; i < all->count; i++)
        if (fork() == 0)
            be_stranger(kit, self, all, i);
    for (pid_t pid; (pid = wait(&status)) > 0 || errno == EINTR;)
        ended += pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const unsigned done = atomic_load(&wb_board_of(kit)->done);
    all->good = done < ended ? done : ended;
}

int wb_strangers_run(wb_kit *kit, unsigned count, wb_stranger_fn live)
{
    strangers all = { live, count, 0 };
    return wb_nursery_do(kit, make_strangers, &all, sizeof all) &&
           wb_kit_check(kit, all.good == count, "of %u processes %u did their work", count, all.good);
}

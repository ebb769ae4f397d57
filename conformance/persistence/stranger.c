/* SPDX-License-Identifier: Apache-2.0
 *
 * Strangers: processes in which the plugin has not run. What it keeps in memory it does not have
 * there, and locks that it shares with its own threads say nothing.
 *
 * They are the children of a nursery, which is forked before the plugin runs for the first time
 * and forks some of itself whenever it is told to.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/persistence/persistence.h"

typedef struct order {
    wb_stranger_fn live; /* the same code is at the same place in all of them */
    unsigned count;
    size_t number; /* of the case */
    const wb_kit_case *current;
} order;

static wb_stores_kit *stores_of(wb_kit *kit)
{
    return (wb_stores_kit *)kit;
}

/* ---- in the nursery --------------------------------------------------------------------- */

_Noreturn static void be_stranger(wb_kit *kit, pid_t nursery, const order *got, unsigned which)
{
    wb_kit_end_with(nursery);
    kit->number = got->number;
    kit->current = got->current;
    kit->is_failed = 0;
    wb_store *store = wb_store_again(kit, 0);
    wb_client *client = store ? wb_client_open_on(kit, store) : NULL;
    if (client)
        got->live(client, which, stores_of(kit)->board);
    if (client)
        wb_client_close(client);
    if (store)
        store->ops->destroy(store->instance);
    _exit(kit->is_failed != 0);
}

/* @return how many of them did what they were told. */
static unsigned obey(wb_kit *kit, const order *got)
{
    const pid_t self = getpid();
    unsigned good = 0;
    int status;
    for (unsigned i = 0; i < got->count; i++)
        if (fork() == 0)
            be_stranger(kit, self, got, i);
    for (pid_t pid; (pid = wait(&status)) > 0 || errno == EINTR;)
        good += pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return good;
}

_Noreturn static void be_nursery(wb_kit *kit, pid_t runner, int orders)
{
    order got;
    wb_kit_end_with(runner);
    while (recv(orders, &got, sizeof got, 0) == (ssize_t)sizeof got) {
        unsigned good = obey(kit, &got);
        if (send(orders, &good, sizeof good, MSG_NOSIGNAL) != (ssize_t)sizeof good)
            break;
    }
    _exit(0);
}

/* ---- in the runner ---------------------------------------------------------------------- */

void wb_nursery_begin(wb_stores_kit *kit)
{
    int ends[2];
    void *board = mmap(NULL, sizeof *kit->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    kit->nursery = -1;
    kit->board = board == MAP_FAILED ? NULL : board;
    if (!kit->board || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    const pid_t self = getpid();
    kit->nursery_pid = fork();
    if (kit->nursery_pid == 0) {
        (void)close(ends[0]);
        be_nursery(&kit->kit, self, ends[1]);
    }
    (void)close(ends[1]);
    kit->nursery = ends[0];
}

void wb_nursery_end(wb_stores_kit *kit)
{
    if (kit->nursery < 0)
        return;
    (void)close(kit->nursery); /* which ends it */
    (void)waitpid(kit->nursery_pid, NULL, 0);
    (void)munmap(kit->board, sizeof *kit->board);
}

wb_board *wb_board_of(wb_kit *kit)
{
    return stores_of(kit)->board;
}

int wb_strangers_run(wb_kit *kit, unsigned count, wb_stranger_fn live)
{
    const order given = { live, count, kit->number, kit->current };
    const int nursery = stores_of(kit)->nursery;
    struct pollfd answer = { .fd = nursery, .events = POLLIN };
    unsigned good = 0;
    if (!wb_kit_check(kit, nursery >= 0, "there are no other processes"))
        return 0;
    if (send(nursery, &given, sizeof given, MSG_NOSIGNAL) != (ssize_t)sizeof given ||
        poll(&answer, 1, (int)(WB_CALL_DEADLINE / WB_MILLISECOND)) != 1)
        wb_kit_abandon(kit, "another process has not ended within %d s", (int)(WB_CALL_DEADLINE / WB_SECOND));
    return wb_kit_check(kit, recv(nursery, &good, sizeof good, 0) == (ssize_t)sizeof good && good == count,
                        "of %u processes %u did their work", count, good);
}

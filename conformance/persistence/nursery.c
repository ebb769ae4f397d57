/* SPDX-License-Identifier: Apache-2.0
 *
 * The nursery: a process in which the plugin does not run. It is forked before the plugin runs for the
 * first time, and does whatever work it is told to: it forks processes and sees what becomes of them.
 *
 * A plugin may have threads, which a fork does not take along, or a library that may not be used
 * behind one. So all processes that use the plugin are children of the nursery, and none of the runner.
 */
#include "config.h"

#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/persistence/persistence.h"

#define ARGUMENT_MAX 256

typedef struct order {
    wb_nursery_fn work; /* the same code is at the same place in all of them */
    size_t number;      /* of the case */
    const wb_kit_case *current;
    _Alignas(max_align_t) unsigned char argument[ARGUMENT_MAX];
} order;

static wb_stores_kit *stores_of(wb_kit *kit)
{
    return (wb_stores_kit *)kit;
}

_Noreturn static void be_nursery(wb_kit *kit, pid_t runner, int orders)
{
    order got;
    wb_kit_end_with(runner);
    while (recv(orders, &got, sizeof got, 0) == (ssize_t)sizeof got) {
        kit->number = got.number;
        kit->current = got.current;
        kit->is_failed = 0;
        got.work(kit, got.argument);
        if (send(orders, &got, sizeof got, MSG_NOSIGNAL) != (ssize_t)sizeof got)
            break;
    }
    _exit(0);
}

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

int wb_nursery_do(wb_kit *kit, wb_nursery_fn work, void *argument, size_t size)
{
    order given = { .work = work, .number = kit->number, .current = kit->current };
    const int nursery = stores_of(kit)->nursery;
    struct pollfd answer = { .fd = nursery, .events = POLLIN };
    if (!wb_kit_check(kit, nursery >= 0 && size <= sizeof given.argument, "there are no other processes"))
        return 0;
    memcpy(given.argument, argument, size);
    if (send(nursery, &given, sizeof given, MSG_NOSIGNAL) != (ssize_t)sizeof given ||
        poll(&answer, 1, (int)(WB_CALL_DEADLINE / WB_MILLISECOND)) != 1)
        wb_kit_abandon(kit, "another process has not ended within %d s", (int)(WB_CALL_DEADLINE / WB_SECOND));
    const int is_done = recv(nursery, &given, sizeof given, 0) == (ssize_t)sizeof given;
    if (is_done)
        memcpy(argument, given.argument, size);
    return wb_kit_check(kit, is_done, "the process that makes others is gone");
}

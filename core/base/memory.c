/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/memory.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/base/log.h"

typedef struct trap {
    jmp_buf place;
    struct trap *outer;
    wb_memory_held *held; /* when it was set */
} trap;

static _Thread_local trap *nearest;
static _Thread_local wb_memory_held *last_held;

int wb_memory_try(void (*work)(void *argument), void *argument)
{
    trap mine = { .outer = nearest, .held = last_held };
    if (setjmp(mine.place) != 0) {
        nearest = mine.outer;
        return -1;
    }
    nearest = &mine;
    work(argument);
    nearest = mine.outer;
    return 0;
}

void wb_memory_hold(wb_memory_held *held, void (*release)(void *thing), void *thing)
{
    *held = (wb_memory_held){ release, thing, last_held };
    last_held = held;
}

void wb_memory_let_go(const wb_memory_held *held)
{
    last_held = held->before;
}

/* The functions that hold something are still there: nobody has jumped yet. */
static void release_all(const wb_memory_held *until)
{
    while (last_held != until) {
        const wb_memory_held *held = last_held;
        last_held = held->before;
        held->release(held->thing);
    }
}

_Noreturn void wb_memory_is_out(void)
{
    wb_log_write(WB_LOG_ERROR, "out of memory", NULL, 0);
    if (!nearest)
        abort();
    release_all(nearest->held);
    longjmp(nearest->place, 1);
}

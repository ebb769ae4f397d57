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
} trap;

static _Thread_local trap *nearest;

int wb_memory_try(void (*work)(void *argument), void *argument)
{
    trap mine = { .outer = nearest };
    if (setjmp(mine.place) != 0) {
        nearest = mine.outer;
        return -1;
    }
    nearest = &mine;
    work(argument);
    nearest = mine.outer;
    return 0;
}

_Noreturn void wb_memory_is_out(void)
{
    wb_log_write(WB_LOG_ERROR, "out of memory", NULL, 0);
    if (nearest)
        longjmp(nearest->place, 1);
    abort();
}

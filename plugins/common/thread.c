/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/thread.h"

void wb_common_signals_block(sigset_t *ret_before)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

void wb_common_signals_restore(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

static int start(pthread_t *ret_thread, size_t stack_size, void *(*main)(void *), void *argument)
{
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);
    if (failed)
        return failed;
    if (stack_size)
        failed = pthread_attr_setstacksize(&attributes, stack_size);
    if (!failed)
        failed = pthread_create(ret_thread, &attributes, main, argument);
    (void)pthread_attr_destroy(&attributes);
    return failed;
}

int wb_common_thread_start(pthread_t *ret_thread, size_t stack_size, void *(*main)(void *),
                           void *argument)
{
    sigset_t before;
    wb_common_signals_block(&before);
    int failed = start(ret_thread, stack_size, main, argument);
    wb_common_signals_restore(&before);
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/console/desk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/clock.h"

struct wb_desk {
    wb_deeds deeds;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the next four */
    pthread_cond_t wakes;
    wb_errand *first, *running;
    size_t count; /* that wait */
    int is_closed;
    atomic_int has_ended;
};

wb_errand *wb_errand_make(const wb_deed *deed, const json_t *given)
{
    wb_errand *errand = wb_alloc_zero(1, sizeof *errand);
    errand->deed = deed;
    errand->given = json_deep_copy(given);
    return errand;
}

void wb_errand_free(wb_errand *errand)
{
    if (!errand)
        return;
    json_decref(errand->given);
    wb_answer_free(&errand->answer);
    free(errand);
}

/* ---- the thread -------------------------------------------------------------------------- */

/* What is asked is the thread's while it runs: whoever asks need not live as long. @return 0: the desk is closed. */
static int take(wb_desk *desk, const wb_deed **ret_deed, json_t **ret_given)
{
    pthread_mutex_lock(&desk->lock);
    while (!desk->first && !desk->is_closed)
        pthread_cond_wait(&desk->wakes, &desk->lock);
    wb_errand *errand = desk->running = desk->first;
    if (errand) {
        desk->first = errand->next;
        desk->count--;
        *ret_deed = errand->deed;
        *ret_given = errand->given;
        errand->given = NULL;
    }
    pthread_mutex_unlock(&desk->lock);
    return errand != NULL;
}

/* Whoever waited may have been told something else meanwhile, and is gone. */
static void finish(wb_desk *desk, wb_answer *answer)
{
    pthread_mutex_lock(&desk->lock);
    if (desk->running) {
        desk->running->answer = *answer;
        desk->running->tell(desk->running->argument);
    } else {
        wb_answer_free(answer);
    }
    desk->running = NULL;
    pthread_mutex_unlock(&desk->lock);
}

static void *work(void *argument)
{
    wb_desk *desk = argument;
    const wb_deed *deed = NULL;
    json_t *given = NULL;
    while (take(desk, &deed, &given)) {
        wb_answer answer = { 0 };
        deed->run(desk->deeds.owner, given, &answer);
        json_decref(given);
        finish(desk, &answer);
    }
    atomic_store(&desk->has_ended, 1);
    return NULL;
}

/* ---- who gives --------------------------------------------------------------------------- */

wb_desk *wb_desk_open(const wb_deeds *deeds)
{
    wb_desk *desk = wb_alloc_zero(1, sizeof *desk);
    desk->deeds = *deeds;
    pthread_mutex_init(&desk->lock, NULL);
    pthread_cond_init(&desk->wakes, NULL);
    if (pthread_create(&desk->thread, NULL, work, desk) == 0)
        return desk;
    pthread_cond_destroy(&desk->wakes);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
    return NULL;
}

int wb_desk_has_room(wb_desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    const int has_room = !desk->is_closed && desk->count < WB_DESK_LINE;
    pthread_mutex_unlock(&desk->lock);
    return has_room;
}

static void tell_closed(wb_errand *errand)
{
    wb_answer_refuse(&errand->answer, 503, "the program stops");
    errand->tell(errand->argument);
}

void wb_desk_give(wb_desk *desk, wb_errand *errand)
{
    wb_errand **last = &desk->first;
    pthread_mutex_lock(&desk->lock);
    if (desk->is_closed) {
        tell_closed(errand);
    } else {
        while (*last)
            last = &(*last)->next;
        *last = errand;
        desk->count++;
        pthread_cond_signal(&desk->wakes);
    }
    pthread_mutex_unlock(&desk->lock);
}

void wb_desk_close(wb_desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    desk->is_closed = 1;
    if (desk->running)
        tell_closed(desk->running);
    desk->running = NULL;
    for (wb_errand *next, *errand = desk->first; errand; errand = next) {
        next = errand->next;
        tell_closed(errand);
    }
    desk->first = NULL;
    desk->count = 0;
    pthread_cond_signal(&desk->wakes);
    pthread_mutex_unlock(&desk->lock);
}

int wb_desk_end(wb_desk *desk, int64_t patience)
{
    const int64_t until = wb_clock_monotonic() + patience;
    if (!desk)
        return 1;
    while (!atomic_load(&desk->has_ended) && wb_clock_monotonic() < until)
        wb_clock_pause(5 * WB_MILLISECOND, NULL);
    if (!atomic_load(&desk->has_ended))
        return 0;
    pthread_join(desk->thread, NULL);
    pthread_cond_destroy(&desk->wakes);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
    return 1;
}

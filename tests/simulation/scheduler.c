/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/scheduler.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "core/base/alarm.h"
#include "core/base/clock.h"
#include "tests/simulation/random.h"
#include "tests/simulation/strand.h"
#include "tests/simulation/verdict.h"

#define THREADS_MAX 2048
#define EPOCH (INT64_C(1767225600) * WB_SECOND) /* 2026-01-01 */

struct sim_thread {
    sim_strand *strand;
    char name[24];
    int process;
    void *(*function)(void *);
    void *argument;
    int has_ended, is_dead;
    const char *where;
    int64_t until; /* 0: it could go on */
    sim_ready_fn ready;
    void *ready_argument;
};

static struct {
    sim_thread *threads[THREADS_MAX]; /* those that live */
    size_t count;
    sim_thread *current;
    int64_t now;
    int64_t offsets[SIM_PROCESSES_MAX];
    long deaths[SIM_PROCESSES_MAX]; /* steps until then */
    void (*bury)(int process);
    long steps, limit;
    unsigned switching;
    sim_strand *main;
    void (*driver)(void);
    char next_name[24];
} scheduler;

/* The linker puts ours in place of the core's (--wrap). */
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument);
int __wrap_pthread_join(pthread_t id, void **result);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
void __wrap_wb_clock_pause(int64_t duration, const atomic_int *stop);
int64_t __wrap_wb_clock_monotonic(void);
int64_t __wrap_wb_clock_wall(void);
int64_t __wrap_wb_clock_steady(void);
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags);
void __wrap_wb_alarm_sleep(wb_alarm *alarm, int64_t until, int64_t duration);

/* Who sleeps by an alarm, until what. */
typedef struct {
    const wb_alarm *alarm;
    int64_t until;
} sleeper;

/* ---- who runs ---- */

static int is_ready(sim_thread *thread)
{
    return !thread->until || thread->until <= scheduler.now ||
           (thread->ready && thread->ready(thread->ready_argument));
}

static void move_clock(void)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < scheduler.count; i++)
        if (scheduler.threads[i]->until < first)
            first = scheduler.threads[i]->until;
    if (first == INT64_MAX) {
        const sim_thread *stuck = scheduler.threads[scheduler.count - 1];
        sim_violation("all threads wait for ever, %s at %s", stuck->name, stuck->where);
    }
    scheduler.now = first;
}

static sim_thread *choose(void)
{
    static sim_thread *ready[THREADS_MAX]; /* on each thread's stack they would be pages of their own */
    for (;;) {
        size_t count = 0;
        for (size_t i = 0; i < scheduler.count; i++)
            if (is_ready(scheduler.threads[i]))
                ready[count++] = scheduler.threads[i];
        if (count)
            return ready[sim_random((unsigned)count)];
        move_clock();
    }
}

/* `me` waits for its turn, unless its life is over. */
static void hand_on(sim_thread *me)
{
    sim_thread *next = choose();
    scheduler.current = next;
    if (next == me)
        return;
    if (me->has_ended)
        sim_strand_leave(me->strand, next->strand);
    sim_strand_switch(me->strand, next->strand);
}

static void forget(const sim_thread *thread)
{
    for (size_t i = 0; i < scheduler.count; i++)
        if (scheduler.threads[i] == thread) {
            memmove(&scheduler.threads[i], &scheduler.threads[i + 1],
                    (--scheduler.count - i) * sizeof scheduler.threads[0]);
            return;
        }
}

static void thread_main(void *argument)
{
    sim_thread *me = argument;
    (void)me->function(me->argument);
    me->has_ended = 1;
    forget(me);
    hand_on(me);
}

sim_thread *sim_spawn(int process, const char *name, void *(*function)(void *), void *argument)
{
    sim_thread *thread = calloc(1, sizeof *thread);
    if (!thread || scheduler.count == THREADS_MAX)
        abort();
    thread->process = process;
    thread->function = function;
    thread->argument = argument;
    thread->where = "start";
    (void)snprintf(thread->name, sizeof thread->name, "%s", name);
    thread->strand = sim_strand_new(thread_main, thread);
    scheduler.threads[scheduler.count++] = thread;
    return thread;
}

void sim_name_next(const char *name)
{
    (void)snprintf(scheduler.next_name, sizeof scheduler.next_name, "%s", name);
}

int sim_has_ended(const sim_thread *thread)
{
    return thread->has_ended;
}

/* The threads that are left have nobody to hand them the baton. */
static void *driver_main(void *argument)
{
    (void)argument;
    scheduler.driver();
    sim_strand_leave(scheduler.current->strand, scheduler.main);
    return NULL;
}

void sim_scheduler_run(void (*driver)(void), unsigned switching)
{
    scheduler.now = WB_SECOND; /* 0 is no time */
    scheduler.driver = driver;
    scheduler.switching = switching;
    scheduler.main = sim_strand_main();
    scheduler.current = sim_spawn(SIM_NO_PROCESS, "driver", driver_main, NULL);
    sim_strand_switch(scheduler.main, scheduler.current->strand);
}

void sim_scheduler_limit(long steps)
{
    scheduler.limit = steps;
}

/* ---- scheduling points ---- */

/* Most calls are quick; now and then one is not. */
static int64_t latency(void)
{
    if (sim_random(200) == 0)
        return sim_random_between(10 * WB_MILLISECOND, 300 * WB_MILLISECOND);
    return sim_random_between(20000, WB_MILLISECOND);
}

static void come_to_death(const sim_thread *me)
{
    long *left = &scheduler.deaths[me->process];
    if (*left && --*left == 0)
        sim_kill(me->process);
}

static void count_step(sim_thread *me, const char *where)
{
    me->where = where;
    if (scheduler.limit && ++scheduler.steps > scheduler.limit)
        sim_violation("no end after %ld steps and %.0f s: %s at %s", scheduler.limit,
                      (double)scheduler.now / 1e9, me->name, where);
}

void sim_step(const char *where)
{
    sim_thread *me = scheduler.current;
    count_step(me, where);
    scheduler.now += latency();
    come_to_death(me);
    if (sim_chance(scheduler.switching))
        hand_on(me);
}

int sim_wait(const char *where, int64_t until, sim_ready_fn ready, void *argument)
{
    sim_thread *me = scheduler.current;
    count_step(me, where);
    come_to_death(me);
    me->until = until > 0 ? until : 1;
    me->ready = ready;
    me->ready_argument = argument;
    hand_on(me);
    me->until = 0;
    return ready ? ready(argument) : 0;
}

void sim_sleep(int64_t duration)
{
    (void)sim_wait("sleep", scheduler.now + duration, NULL, NULL);
}

/* ---- time ---- */

int64_t sim_now(void)
{
    return scheduler.now;
}

int64_t sim_true_wall(void)
{
    return EPOCH + scheduler.now;
}

void sim_set_wall_offset(int process, int64_t offset)
{
    scheduler.offsets[process] = offset;
}

int64_t sim_wall_offset(int process)
{
    return scheduler.offsets[process];
}

void sim_advance(int64_t duration)
{
    scheduler.now += duration;
}

/* ---- life and death ---- */

int sim_process(void)
{
    return scheduler.current->process;
}

sim_thread *sim_current(void)
{
    return scheduler.current;
}

const char *sim_thread_name(void)
{
    return scheduler.current ? scheduler.current->name : "main";
}

long sim_steps_taken(void)
{
    return scheduler.steps;
}

void sim_on_death(void (*bury)(int process))
{
    scheduler.bury = bury;
}

void sim_arm_death(int process, long steps)
{
    scheduler.deaths[process] = steps;
}

void sim_kill(int process)
{
    sim_thread *me = scheduler.current;
    sim_tell("process %d dies", process);
    scheduler.deaths[process] = 0;
    for (size_t i = 0; i < scheduler.count;) {
        sim_thread *thread = scheduler.threads[i];
        if (thread->process != process) {
            i++;
            continue;
        }
        thread->is_dead = 1;
        forget(thread);
    }
    scheduler.bury(process);
    if (!me->is_dead)
        return;
    hand_on(me);
    abort(); /* nobody hands it the baton any more */
}

/* ---- what the core calls ---- */

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument)
{
    (void)attributes;
    *id = (pthread_t)(uintptr_t)sim_spawn(sim_process(), scheduler.next_name, function, argument);
    return 0;
}

static int joinable_has_ended(void *argument)
{
    const sim_thread *thread = argument;
    return thread->has_ended || thread->is_dead;
}

int __wrap_pthread_join(pthread_t id, void **result)
{
    (void)sim_wait("pthread_join", WB_NEVER, joinable_has_ended, (void *)(uintptr_t)id);
    if (result)
        *result = NULL;
    return 0;
}

static int try_lock(void *argument)
{
    return pthread_mutex_trylock(argument) == 0;
}

/* Not the moment of a switch: what nobody else waits for costs nothing. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!scheduler.current || try_lock(mutex))
        return 0;
    while (pthread_mutex_trylock(mutex) != 0) /* the step between looks lets its holder go on */
        (void)sim_wait("pthread_mutex_lock", scheduler.now + WB_MILLISECOND, NULL, NULL);
    return 0;
}

/* ---- conditions ---- */

/* Of all processes that ever were in a run. */
#define CONDITIONS_MAX 512

typedef struct {
    const pthread_cond_t *condition;
    unsigned changes; /* how often somebody said that it has changed */
} sim_condition;

typedef struct {
    const sim_condition *condition;
    unsigned seen;
} change_wait;

/* One whose process is no more keeps its place, unless another one comes to lie there. */
static sim_condition *condition_of(const pthread_cond_t *condition)
{
    static sim_condition all[CONDITIONS_MAX];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].condition && all[i].condition != condition)
            continue;
        all[i].condition = condition;
        return &all[i];
    }
    abort();
}

static int has_changed(void *argument)
{
    const change_wait *wait = argument;
    return wait->condition->changes != wait->seen;
}

static int wait_for_change(const pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until)
{
    change_wait wait = { condition_of(condition), condition_of(condition)->changes };
    pthread_mutex_unlock(mutex);
    int has = sim_wait("pthread_cond_wait", until, has_changed, &wait);
    (void)__wrap_pthread_mutex_lock(mutex);
    return has ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return wait_for_change(condition, mutex, WB_NEVER);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    return wait_for_change(condition, mutex, until->tv_sec * WB_SECOND + until->tv_nsec);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    condition_of(condition)->changes++;
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    return __wrap_pthread_cond_broadcast(condition);
}

/* ---- alarms, pauses, clocks ---- */

static int has_rung(void *argument)
{
    const sleeper *s = argument;
    return s->alarm->is_rung || s->alarm->earliest < s->until;
}

void __wrap_wb_alarm_sleep(wb_alarm *alarm, int64_t until, int64_t duration)
{
    sleeper s = { alarm, until };
    (void)sim_wait("wb_alarm_sleep", scheduler.now + (duration > 1000 ? duration : 1000), has_rung, &s);
    alarm->is_rung = 0;
}

static int is_set(void *argument)
{
    return atomic_load((const atomic_int *)argument);
}

void __wrap_wb_clock_pause(int64_t duration, const atomic_int *stop)
{
    int64_t until = scheduler.now + (duration > 1000 ? duration : 1000);
    if (stop)
        (void)sim_wait("wb_clock_pause", until, is_set, (void *)(uintptr_t)stop);
    else
        (void)sim_wait("wb_clock_pause", until, NULL, NULL);
}

int64_t __wrap_wb_clock_monotonic(void)
{
    return scheduler.now += 200;
}

int64_t __wrap_wb_clock_steady(void)
{
    return scheduler.now;
}

int64_t __wrap_wb_clock_wall(void)
{
    int process = scheduler.current ? scheduler.current->process : SIM_NO_PROCESS;
    return sim_true_wall() + scheduler.offsets[process];
}

ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = (unsigned char)sim_random_bits();
    return (ssize_t)size;
}

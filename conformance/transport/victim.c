/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that die with messages in their hands.
 *
 * They are forked before the plugin has run for the first time, because threads do not
 * survive a fork, and wait for their order: which case, how many messages.
 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/transport/steps.h"

typedef struct order {
    size_t case_number;
    size_t count;
    size_t gone; /* of them it acknowledges so many, for good */
    int mode;
    int commits; /* the first, and a letter to OTHER */
} order;

static int acknowledge(wb_tk_session *s, size_t count)
{
    const wb_incoming *none = NULL;
    wb_error error = { 0 };
    if (!count)
        return 1;
    return wb_tk_acknowledge(s, 0, count) &&
           wb_tk_is_ok(&s->tk->kit, s->tk->ops->acknowledge(s->session, &none, 0, &error), &error,
                       "acknowledge nothing");
}

/* One transaction; that it is on its way is said before. */
static int commit(wb_tk_session *s, int answers)
{
    wb_tk *tk = s->tk;
    wb_tk_letter letter;
    wb_error error = { 0 };
    wb_tk_write(&tk->kit, &letter, tk->queues[WB_TK_OTHER], "k", 7);
    return tk->ops->begin(s->session, &error) == WB_OK && wb_tk_send_letter(s, &letter) &&
           tk->ops->acknowledge(s->session, s->in_hand, 1, &error) == WB_OK && write(answers, "1", 1) == 1 &&
           tk->ops->commit(s->session, &error) == WB_OK;
}

static int do_work(wb_tk_session *s, const order *given, int answers)
{
    if (!s || !wb_tk_collect(s, given->count))
        return 0;
    return given->commits ? commit(s, answers)
                          : acknowledge(s, given->gone) && write(answers, "1", 1) == 1;
}

/* In the new process. It ends by a signal only, unless it fails. */
static void obey(wb_tk *tk, pid_t parent, int orders, int answers)
{
    order got;
    wb_kit_end_with(parent);
    if (read(orders, &got, sizeof got) != (ssize_t)sizeof got)
        _exit(0);
    tk->kit.number = got.case_number;
    tk->is_swept = 1; /* what there is was put there for us */
    (void)pthread_mutex_init(&tk->kit.lock, NULL);
    if (!do_work(wb_tk_open(&tk->kit, WB_TK_MAIN, got.mode, (uint32_t)got.count), &got, answers))
        _exit(1);
    for (;;)
        (void)pause();
}

static int spawn(wb_tk *tk, wb_tk_victim *victim)
{
    int orders[2], answers[2];
    if (pipe2(orders, O_CLOEXEC) != 0)
        return 0;
    if (pipe2(answers, O_CLOEXEC) != 0) {
        (void)close(orders[0]);
        (void)close(orders[1]);
        return 0;
    }
    const pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0)
        obey(tk, self, orders[0], answers[1]);
    (void)close(orders[0]);
    (void)close(answers[1]);
    *victim = (wb_tk_victim){ pid, orders[1], answers[0] };
    return 1;
}

void wb_tk_victims_spawn(wb_tk *tk)
{
    (void)fflush(NULL);
    for (size_t i = 0; i < WB_TK_VICTIMS; i++)
        if (!spawn(tk, &tk->victims[i]))
            tk->victims[i] = (wb_tk_victim){ -1, -1, -1 };
}

static void end(wb_tk_victim *victim)
{
    if (victim->pid > 0) {
        (void)kill(victim->pid, SIGKILL);
        (void)waitpid(victim->pid, NULL, 0);
        (void)close(victim->orders);
        (void)close(victim->answers);
    }
    victim->pid = -1;
}

int wb_tk_victim_dies(wb_kit *kit, size_t count)
{
    return wb_tk_victim_acknowledges(kit, count, 0);
}

/* It lives on for a while behind its answer. */
static int give_order(wb_kit *kit, const order *given, int64_t alive)
{
    wb_tk *tk = wb_tk_of(kit);
    char answer = 0;
    size_t at = 0;
    while (at < WB_TK_VICTIMS && tk->victims[at].pid < 0)
        at++;
    if (!wb_kit_check(kit, at < WB_TK_VICTIMS, "there is no process left to be killed"))
        return 0;
    wb_tk_victim *victim = &tk->victims[at];
    int is_ok = write(victim->orders, given, sizeof *given) == (ssize_t)sizeof *given &&
                read(victim->answers, &answer, 1) == 1;
    if (alive)
        wb_clock_pause(alive, NULL);
    end(victim);
    return wb_kit_check(kit, is_ok, "a process of its own did not receive %zu messages", given->count);
}

int wb_tk_victim_acknowledges(wb_kit *kit, size_t count, size_t gone)
{
    const order given = { .case_number = kit->number, .count = count, .gone = gone, .mode = wb_tk_of(kit)->mode };
    return give_order(kit, &given, 0);
}

int wb_tk_victim_commits(wb_kit *kit, int mode, int64_t alive)
{
    const order given = { .case_number = kit->number, .count = 1, .mode = mode, .commits = 1 };
    return give_order(kit, &given, alive);
}

void wb_tk_victims_end(wb_tk *tk)
{
    for (size_t i = 0; i < WB_TK_VICTIMS; i++)
        end(&tk->victims[i]);
}

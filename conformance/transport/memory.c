/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: what waits behind a slow handler has a bound, however much there is of it.
 */
#include "config.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

#include "conformance/transport/setting.h"
#include "core/base/arena.h"

#define LARGE_COUNT 256
#define LARGE_SIZE ((size_t)1 << 20)
#define LARGE_WINDOW 8
#define LARGE_PREFETCH 4
/* Of bodies over the endpoint's body_max, so many would fill more than there may be. */
#define OVER_SIZE (8 * LARGE_SIZE)
#define OVER_PREFETCH 24
/* The host asks for few at a time; what is read ahead beyond that has this limit, half of what
 * the queue holds. */
#define AHEAD_MAX ((size_t)128 << 20)

/* What the process has for itself alone: pages of files that it has mapped are the system's to take. */
static size_t resident(void)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    (void)malloc_trim(0);
    while (file && !kib && fgets(line, sizeof line, file))
        (void)sscanf(line, "RssAnon: %zu kB", &kib);
    if (file)
        (void)fclose(file);
    return kib * 1024;
}

/* @return 0 when bodies of that size are refused: the case then uses smaller ones. */
static int send_large(wb_kit *kit, size_t size)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letters[LARGE_WINDOW];
    wb_operation *operations[LARGE_WINDOW];
    wb_error error = { 0 };
    int is_ok = 1;
    wb_tk_session *sender = wb_tk_sender(kit);
    char *body = wb_alloc_zero(1, size);
    for (size_t at = 0; sender && is_ok && at < LARGE_COUNT * LARGE_SIZE / size;
         at += LARGE_WINDOW) {
        for (size_t i = 0; i < LARGE_WINDOW; i++) {
            wb_tk_write(kit, &letters[i], tk->queues[WB_TK_MAIN], "k", at + i);
            letters[i].operation.body = body;
            letters[i].operation.body_size = size;
            operations[i] = &letters[i].operation;
        }
        is_ok = wb_tk_is_ok(kit, tk->ops->send(sender->session, operations, LARGE_WINDOW,
                                               wb_tk_in(tk, tk->patience), &error),
                            &error, "send") &&
                operations[0]->result == WB_OK;
    }
    free(body);
    return sender && is_ok;
}

/* Fill the queue with bodies of that size, or of a fraction of it when the transport refuses
 * them. @return the size, 0: failed. */
static size_t fill_queue(wb_kit *kit, size_t size)
{
    for (; size >= WB_TK_BODY_SURE; size /= 4)
        if (send_large(kit, size))
            return size;
    wb_kit_check(kit, 0, "the messages could not be sent");
    return 0;
}

static void check_growth(wb_kit *kit, size_t before, size_t bound)
{
    wb_clock_pause(WB_SECOND, NULL); /* a handler that takes its time */
    size_t after = resident();
    wb_kit_check(kit, before && after, "the size of the process is not known");
    wb_kit_check(kit, after < before + bound, "%zu KiB more in use, %zu are justified",
                 (after - before) / 1024, bound / 1024);
}

/* What is in hand and all that is left, so many at once. */
static void drain(wb_tk_session *s, size_t left, size_t at_once)
{
    while (wb_tk_finish(s) && left) {
        size_t next = left < at_once ? left : at_once;
        if (!wb_tk_collect(s, next))
            return;
        left -= next;
    }
}

static void memory_is_bounded(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, LARGE_PREFETCH);
    if (!s)
        return;
    wb_tk_close(s); /* it was opened to make sure that the queue is empty */
    size_t size = fill_queue(kit, LARGE_SIZE);
    size_t before = resident();
    if (!size || !wb_tk_reopen(s) || !wb_tk_collect(s, LARGE_PREFETCH))
        return;
    check_growth(kit, before, 2 * LARGE_PREFETCH * size + AHEAD_MAX);
    drain(s, LARGE_COUNT * LARGE_SIZE / size - LARGE_PREFETCH, LARGE_PREFETCH);
}

static void small_bodies_only(wb_endpoint_info *info)
{
    info->body_max = WB_TK_BODY_SURE;
}

/* Of those over the limit a plugin may read one at a time, so they are taken one at a time. */
static void large_ones_need_little(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_instance *instance =
        wb_tk_instance_changed(kit, WB_TK_MAIN, tk->mode, small_bodies_only);
    wb_tk_session *s =
        instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE, OVER_PREFETCH) : NULL;
    if (!s)
        return;
    wb_tk_close(s);
    size_t size = fill_queue(kit, OVER_SIZE);
    size_t before = resident();
    if (!size || !wb_tk_reopen(s) || !wb_tk_collect(s, 1))
        return;
    check_growth(kit, before, OVER_PREFETCH * WB_TK_BODY_SURE + 2 * size + AHEAD_MAX);
    drain(s, LARGE_COUNT * LARGE_SIZE / size - 1, 1);
}

/* ---- what was undone ------------------------------------------------------------------- */

#define UNDONE_COUNT 64
/* A broker may not deliver a message much more often: rather one lot more. */
#define UNDONE_ROUNDS 5
#define UNDONE_LOTS 2
/* Half of what would be kept if each round were. */
#define UNDONE_MAX ((size_t)UNDONE_LOTS * UNDONE_ROUNDS * UNDONE_COUNT * WB_TK_BODY_SURE / 2)

/* A window of bodies of 64 KiB, 4 MiB together. */
static int send_window(wb_tk_session *s, int queue)
{
    wb_tk *tk = s->tk;
    wb_tk_letter *letters = wb_alloc(UNDONE_COUNT * sizeof *letters);
    wb_operation *operations[UNDONE_COUNT];
    char *body = wb_alloc_zero(1, WB_TK_BODY_SURE);
    for (size_t i = 0; i < UNDONE_COUNT; i++) {
        wb_tk_write(&tk->kit, &letters[i], tk->queues[queue], "k", i);
        letters[i].operation.body = body;
        letters[i].operation.body_size = WB_TK_BODY_SURE;
        operations[i] = &letters[i].operation;
    }
    const int is_ok = wb_tk_send(s, operations, UNDONE_COUNT);
    free(body);
    free(letters);
    return is_ok;
}

/* Skip the case under a sanitizer, which frees late and has memory of its own. @return whether it did. */
static int skips_for_sanitizer(wb_kit *kit)
{
    if (!dlsym(RTLD_DEFAULT, "__asan_init") && !dlsym(RTLD_DEFAULT, "__tsan_init"))
        return 0;
    wb_kit_skip(kit, "a sanitizer keeps what was freed");
    return 1;
}

static void check_kept(wb_kit *kit, size_t before)
{
    const size_t after = resident();
    wb_kit_check(kit, after < before + UNDONE_MAX, "%zu KiB more in use after %d rounds", (after - before) / 1024,
                 UNDONE_LOTS * UNDONE_ROUNDS);
}

/* As many at once as there is room for. */
static int give_back_again_and_again(wb_tk_session *s)
{
    for (int i = 0; i < UNDONE_ROUNDS; i++)
        if (!wb_tk_give_back(s, 0, s->count) || !wb_tk_collect_some(s, UNDONE_COUNT))
            return 0;
    return 1;
}

static int take_the_rest(wb_tk_session *s)
{
    for (size_t left = UNDONE_COUNT - s->count; wb_tk_finish(s) && left; left -= s->count)
        if (!wb_tk_collect_some(s, left))
            return 0;
    return s->count == 0;
}

static void given_back_is_not_kept(wb_kit *kit)
{
    size_t before = 0;
    if (skips_for_sanitizer(kit))
        return;
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, UNDONE_COUNT);
    for (int i = 0; s && sender && i < UNDONE_LOTS; i++) {
        if (!send_window(sender, WB_TK_MAIN) || !wb_tk_collect_some(s, UNDONE_COUNT))
            return;
        before = before ? before : resident();
        if (!give_back_again_and_again(s))
            return;
        if (i == UNDONE_LOTS - 1)
            check_kept(kit, before);
        if (!take_the_rest(s))
            return;
    }
}

static void rolled_back_is_not_kept(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    size_t before = 0;
    if (skips_for_sanitizer(kit) || !wb_tk_settle_in(&in, kit, mode, 1))
        return;
    wb_tk_close(in.watch); /* or what it reads ahead and passes over is counted here */
    for (int i = 0; i <= UNDONE_LOTS * UNDONE_ROUNDS; i++) { /* the first shows how much one needs */
        if (!wb_tk_begin(&in) || !send_window(in.s, WB_TK_OTHER) || !wb_tk_roll_back(&in))
            return;
        before = i ? before : resident();
    }
    check_kept(kit, before);
    (void)(wb_tk_begin(&in) && wb_tk_acknowledge_first(&in) && wb_tk_commit(&in));
}

WB_TK_IN_BOTH_MODES(rolled_back_is_not_kept)

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_memory_cases[] = {
    { "a slow handler in front of a long queue needs bounded memory", RO, memory_is_bounded },
    { "bodies over the endpoint's limit are not read ahead", RO, large_ones_need_little },
    { "what is given back again and again is not kept in memory", RO, given_back_is_not_kept },
    WB_TK_BOTH("what is rolled back again and again is not kept in memory", rolled_back_is_not_kept),
};
WB_TK_CASES(memory);

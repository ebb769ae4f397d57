/* SPDX-License-Identifier: Apache-2.0
 *
 * Transactions that are run again: after a rollback the messages are still in hand, and after
 * a refusal the transaction, or at least its rollback, still works.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/transport/setting.h"
#include "core/base/arena.h"

#define BATCH 5

/* Message `at` in hand is answered with its number and acknowledged; it stays in the list. */
static int handle(const wb_tk_setting *in, size_t at)
{
    wb_tk_letter letter;
    wb_error error = { 0 };
    wb_tk_write(in->kit, &letter, in->tk->queues[WB_TK_OTHER], "k",
                wb_tk_number(in->s->in_hand[at]));
    if (!wb_tk_send_letter(in->s, &letter))
        return 0;
    int result = in->tk->ops->acknowledge(in->s->session, in->s->in_hand + at, 1, &error);
    return wb_tk_is_ok(in->kit, result, &error, "acknowledge");
}

static int handle_all(const wb_tk_setting *in)
{
    for (size_t i = 0; i < BATCH; i++)
        if (!handle(in, i))
            return 0;
    return 1;
}

/* As a host does with a batch that fails: once more, and then one by one. The third of them
 * fails once by itself, too. */
static void batch_then_singles(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (!wb_tk_settle_in(&in, kit, mode, BATCH))
        return;
    for (int i = 0; i < 3; i++)
        if (!wb_tk_begin(&in) || !handle_all(&in) || !wb_tk_roll_back(&in))
            return;
    for (size_t i = 0; i < BATCH; i++) {
        if (i == 2 && (!wb_tk_begin(&in) || !handle(&in, i) || !wb_tk_roll_back(&in)))
            return;
        if (!wb_tk_begin(&in) || !handle(&in, i) || !wb_tk_commit(&in))
            return;
    }
    if (!wb_tk_collect(in.watch, BATCH) || !wb_tk_expect_numbers(in.watch, 0, 1, BATCH) ||
        !wb_tk_finish(in.watch) || !wb_tk_expect_nothing_at_other(&in))
        return;
    wb_tk_expect_main_empty(&in);
}

/* ---- after a refusal ------------------------------------------------------------------- */

#define HEADERS 2000
#define LARGE ((size_t)2 << 20)

enum { BAD_NAME, LARGE_HEADERS, LARGE_BODY };

typedef struct bad_ones {
    wb_header headers[HEADERS];
    unsigned char bytes[LARGE];
} bad_ones;

/* An operation that cannot be sent, or only by few. */
static void write_bad(wb_kit *kit, wb_tk_letter *letter, bad_ones *all, int which)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_write(kit, letter, which == BAD_NAME ? "\xff\xfe" : tk->queues[WB_TK_OTHER], "k", 9);
    if (which == LARGE_HEADERS) {
        all->headers[0] = letter->headers[0];
        for (size_t i = 1; i < HEADERS; i++)
            all->headers[i] = (wb_header){ .name = "large",
                                           .value = (const char *)all->bytes,
                                           .name_size = 5,
                                           .value_size = 1024 };
        letter->operation.headers = all->headers;
        letter->operation.header_count = HEADERS;
    }
    if (which == LARGE_BODY) {
        letter->operation.body = all->bytes;
        letter->operation.body_size = LARGE;
    }
}

/* In a transaction of its own, which is rolled back where it was not refused. */
static int send_bad(const wb_tk_setting *in, wb_tk_letter *bad, int *ret_is_refused)
{
    wb_error error = { 0 };
    wb_operation *operation = &bad->operation;
    int result = in->tk->ops->send(in->s->session, &operation, 1,
                                   wb_tk_in(in->tk, in->tk->patience), &error);
    *ret_is_refused = operation->result == WB_REJECT;
    return wb_tk_is_ok(in->kit, result, &error, "send") &&
           wb_kit_check(in->kit, *ret_is_refused || operation->result == WB_OK,
                        "an operation that may be refused: %s",
                        wb_result_name(operation->result)) &&
           (*ret_is_refused || (wb_tk_roll_back(in) && wb_tk_begin(in)));
}

/* A transaction with a refused operation may be lost, but not those after it. */
static int commit_or_again(wb_tk_setting *in)
{
    wb_error error = { 0 };
    int result = in->tk->ops->commit(in->s->session, &error);
    if (result == WB_OK)
        return 1;
    return wb_kit_check(in->kit, result == WB_RETRY || result == WB_ABORT || result == WB_REJECT,
                        "commit after a refusal: %s: %s", wb_result_name(result), error.text) &&
           wb_tk_roll_back(in) && wb_tk_begin(in) && wb_tk_send_in(in) &&
           wb_tk_acknowledge_first(in) && wb_tk_commit(in);
}

static void goes_on_after(wb_kit *kit, int mode, int which)
{
    wb_tk_setting in;
    wb_tk_letter bad;
    int is_refused;
    bad_ones *all = wb_alloc_zero(1, sizeof *all);
    wb_kit_defer(kit, free, all);
    memset(all->bytes, 'b', sizeof all->bytes);
    if (!wb_tk_settle_in(&in, kit, mode, 1) || !wb_tk_begin(&in))
        return;
    write_bad(kit, &bad, all, which);
    if (!send_bad(&in, &bad, &is_refused) || !wb_tk_send_in(&in) ||
        !wb_tk_acknowledge_first(&in) || !commit_or_again(&in) || !wb_tk_expect_at_other(&in))
        return;
    wb_kit_check(kit, is_refused || which != BAD_NAME,
                 "a destination of the bytes FF FE was not refused");
    wb_tk_expect_main_empty(&in);
}

static void goes_on_after_bad_name(wb_kit *kit, int mode)
{
    goes_on_after(kit, mode, BAD_NAME);
}

static void goes_on_after_large_headers(wb_kit *kit, int mode)
{
    goes_on_after(kit, mode, LARGE_HEADERS);
}

static void goes_on_after_large_body(wb_kit *kit, int mode)
{
    goes_on_after(kit, mode, LARGE_BODY);
}

static void rolled_back_after_refusal(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    wb_tk_letter bad;
    int is_refused;
    if (!wb_tk_settle_in(&in, kit, mode, 1) || !wb_tk_begin(&in) || !wb_tk_send_in(&in))
        return;
    write_bad(kit, &bad, NULL, BAD_NAME);
    if (!send_bad(&in, &bad, &is_refused) || !wb_tk_acknowledge_first(&in) ||
        !wb_tk_roll_back(&in) || !wb_tk_expect_nothing_at_other(&in) || !wb_tk_begin(&in) ||
        !wb_tk_send_in(&in) || !wb_tk_acknowledge_first(&in) || !wb_tk_commit(&in) ||
        !wb_tk_expect_at_other(&in))
        return;
    wb_tk_expect_main_empty(&in);
}

/* ---- after a stop ---------------------------------------------------------------------- */

static void handled_after_stop(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    wb_error error = { 0 };
    if (WB_TK_LACKS(kit, stop_receiving) || !wb_tk_settle_in(&in, kit, mode, 1))
        return;
    int result = in.tk->ops->stop_receiving(in.s->session, &error);
    if (wb_tk_is_ok(kit, result, &error, "stop_receiving") && wb_tk_begin(&in) &&
        wb_tk_send_in(&in) && wb_tk_acknowledge_first(&in) && wb_tk_roll_back(&in) &&
        wb_tk_begin(&in) && wb_tk_send_in(&in) && wb_tk_acknowledge_first(&in) &&
        wb_tk_commit(&in) && wb_tk_expect_at_other(&in))
        wb_tk_expect_main_empty(&in);
}

WB_TK_IN_BOTH_MODES(batch_then_singles)
WB_TK_IN_BOTH_MODES(goes_on_after_bad_name)
WB_TK_IN_BOTH_MODES(goes_on_after_large_headers)
WB_TK_IN_BOTH_MODES(goes_on_after_large_body)
WB_TK_IN_BOTH_MODES(rolled_back_after_refusal)
WB_TK_IN_BOTH_MODES(handled_after_stop)

const wb_kit_case wb_tk_rerun_cases[] = {
    WB_TK_BOTH("a batch that was rolled back is run again, and then one by one",
               batch_then_singles),
    WB_TK_BOTH("a destination that cannot be is refused, the rest is committed",
               goes_on_after_bad_name),
    WB_TK_BOTH("headers that are too large are refused, the rest is committed",
               goes_on_after_large_headers),
    WB_TK_BOTH("a body that is too large is refused, the rest is committed",
               goes_on_after_large_body),
    WB_TK_BOTH("after a refused operation rollback undoes the rest", rolled_back_after_refusal),
    WB_TK_BOTH("after stop_receiving() what is in hand is committed", handled_after_stop),
};
WB_TK_CASES(rerun);

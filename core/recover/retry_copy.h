/* SPDX-License-Identifier: Apache-2.0
 *
 * Delayed retries: whether a message that failed comes back later, when, and the copy that does:
 * original body and headers, and how often it was.
 */
#ifndef WB_RECOVER_RETRY_COPY_H
#define WB_RECOVER_RETRY_COPY_H

#include "core/base/type_policy.h"
#include "core/recover/recoverability.h"

/** No message is retried for longer, counted from its first delayed retry. */
#define WB_DELAYED_RETRIES_END (24 * WB_HOURS)

/** What decides about one message. */
typedef struct wb_retry_question {
    const wb_incoming *incoming;
    const wb_failure *failure;
    int keeps_order; /* what comes behind it has its key, and its place */
    int64_t now;     /* by the clock that delays are counted by */
} wb_retry_question;

/** How long the message is to wait before it is tried again: what its handler wants, or
 *  delay_increment longer each time, and up to delay_jitter percent more, which follow from its id. 0: it is not; the tries are over, or it
 *  failed in a way that no time mends. */
int64_t wb_recover_delay(const wb_recoverability *policy, const wb_retry_question *question);

/** Delayed retries of whichever type has most; `of_others` of those that say nothing. */
int64_t wb_recover_most_retries(int64_t of_others, const wb_type_policy *types, size_t count);

/** How long after its first attempt a message may come once more, of itself: the delays of so many delayed
 *  retries, each as long as it may be. What a handler asks for (wb_retry_after) is not in it, nor what people do
 *  with the error queue. */
int64_t wb_recover_span(int64_t delayed_retries, int64_t increment, int64_t jitter);

/** The operation that sends it to its own queue again, due at `due`. Lives as long as the arena;
 *  points into `incoming`. */
wb_operation *wb_recover_retry_operation(const wb_origin *origin, const wb_incoming *incoming, int64_t due,
                                         wb_arena *arena, wb_operation_list *list);

/** The delayed retries a message has had: its header NServiceBus.Retries. */
uint32_t wb_recover_retries(const wb_header *headers, size_t count);

#endif

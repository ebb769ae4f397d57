/* SPDX-License-Identifier: Apache-2.0
 *
 * The setting of cases about transactions: messages go from MAIN to OTHER; a session of OTHER,
 * in the mode of all other cases, sees what became of them.
 */
#ifndef WB_CONFORMANCE_TRANSPORT_SETTING_H
#define WB_CONFORMANCE_TRANSPORT_SETTING_H

#include "conformance/transport/steps.h"

/** A session of MAIN with messages in hand, and one that looks at OTHER. */
typedef struct wb_tk_setting {
    wb_kit *kit;
    wb_tk *tk;
    int mode;
    wb_tk_session *s;
    wb_tk_session *watch;
    wb_tk_letter letter; /* to OTHER, number 7 */
} wb_tk_setting;

/** With `count` messages in hand, numbers from 1 on. @return 0: failed. */
int wb_tk_settle_in(wb_tk_setting *in, wb_kit *kit, int mode, size_t count);

int wb_tk_begin(const wb_tk_setting *in);
int wb_tk_commit(const wb_tk_setting *in);
int wb_tk_roll_back(const wb_tk_setting *in);

/** Send the letter. */
int wb_tk_send_in(wb_tk_setting *in);
/** Acknowledge the first message. As far as the case knows it stays in hand: it may be undone. */
int wb_tk_acknowledge_first(const wb_tk_setting *in);

/** Whether the letter is at OTHER, once. */
int wb_tk_expect_at_other(const wb_tk_setting *in);
int wb_tk_expect_nothing_at_other(const wb_tk_setting *in);
/** Whether MAIN is empty for whoever comes next. */
void wb_tk_expect_main_empty(wb_tk_setting *in);

/** After a commit() that said `result` while the connection broke: either the message is there again
 *  and nothing was sent, or it is gone and what it sent is there; and what was said is true. It is
 *  acknowledged then. */
void wb_tk_expect_truth(wb_tk_setting *in, int result);

/** The same, where nothing was said because a process died: the session is open already. @return 0: failed. */
int wb_tk_expect_all_or_nothing(wb_tk_setting *in);

/* ---- each in both modes ---------------------------------------------------------------- */

#define WB_TK_IN_BOTH_MODES(what)                                                                  \
    static void what##_atomic(wb_kit *kit)                                                         \
    {                                                                                              \
        what(kit, WB_MODE_SENDS_ATOMIC);                                                           \
    }                                                                                              \
    static void what##_scope(wb_kit *kit)                                                          \
    {                                                                                              \
        what(kit, WB_MODE_TRANSACTION_SCOPE);                                                      \
    }
#define WB_TK_ATOMIC (WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_SENDS_ATOMIC)
#define WB_TK_SCOPE (WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_TRANSACTION_SCOPE)
/** Two lines of a table of cases. */
#define WB_TK_BOTH(text, what)                                                                     \
    { "sends_atomic_with_receive: " text, WB_TK_ATOMIC, what##_atomic },                           \
    { "transaction_scope: " text, WB_TK_SCOPE, what##_scope }

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of the transport kit are made of: instances, sessions, messages with
 * numbers, and what may be expected of them.
 *
 * Queues have fixed names, so that runs do not litter a broker. Each message carries the mark
 * of its run and its case: what an earlier run or case left behind is acknowledged and ignored
 * wherever it turns up.
 *
 * A step that fails notes it and says so to its case. What a step opens the kit closes after
 * the case; the two shared sessions live as long as the runner. One thread a session; the rest
 * belongs to the thread that runs the cases.
 */
#ifndef WB_CONFORMANCE_TRANSPORT_STEPS_H
#define WB_CONFORMANCE_TRANSPORT_STEPS_H

#include <sys/types.h>
#include <waybill/sys/transport.h>

#include "conformance/kit.h"
#include "conformance/wires.h"
#include "core/base/clock.h"

/* The queues: NAME.conformance, NAME.conformance.2, the error queue of both, and what cases receive from beside the first. */
#define WB_TK_MAIN 0
#define WB_TK_OTHER 1
#define WB_TK_ERROR 2
#define WB_TK_FURTHER 3
#define WB_TK_QUEUES 4

#define WB_TK_NAME_SIZE 256
#define WB_TK_OWN_SIZE (WB_TK_NAME_SIZE + 40)
#define WB_TK_MARK_SIZE 40
/* What is not there after this long while nothing holds it up is not there. */
#define WB_TK_QUIET (300 * WB_MILLISECOND)
/* The largest body a transport may not refuse, whatever its server is set to. */
#define WB_TK_BODY_SURE 65536u

/* What endpoints of the kit say a batch holds at most. */
#define WB_TK_BATCH_MAX 100

#define WB_TK_VICTIMS 10

typedef struct wb_tk_session wb_tk_session;

/** A process that waits for its order; pid -1: none, or dead. */
typedef struct wb_tk_victim {
    pid_t pid;
    int orders;
    int answers;
} wb_tk_victim;

typedef struct wb_tk {
    wb_kit kit; /* first: a case's kit is ours */
    const wb_transport_ops *ops;
    int mode; /* receive_only, or the first that is declared */
    int64_t patience;
    char token[17]; /* of this run */
    char queues[WB_TK_QUEUES][WB_TK_NAME_SIZE];
    char event[WB_TK_NAME_SIZE];   /* a type that MAIN and OTHER subscribe to */
    char unheard[WB_TK_NAME_SIZE]; /* a type that nobody subscribes to */
    wb_tk_session *sender;         /* shared, or NULL */
    wb_tk_session *receiver;       /* shared, or NULL */
    int is_swept;                  /* what earlier runners left is gone */
    wb_wires wires;                /* as they were before the plugin was used */
    wb_tk_victim victims[WB_TK_VICTIMS];
} wb_tk;

/** An instance of the plugin, and what it was made of. */
typedef struct wb_tk_instance {
    wb_tk *tk;
    wb_host_instance host;
    wb_endpoint_info info;
    const char *types[1];
    wb_transport *transport;
} wb_tk_instance;

struct wb_tk_session {
    wb_tk *tk;
    wb_tk_instance *instance;
    wb_transport_session *session; /* NULL: closed */
    uint32_t purpose;
    uint32_t prefetch;
    const wb_incoming **in_hand; /* of this case, in the order they came */
    size_t count;
    size_t capacity;
};

/** The kit that a case belongs to. */
wb_tk *wb_tk_of(wb_kit *kit);

/** The body_max of the kit's endpoints: the file's. */
int64_t wb_tk_body_max(const wb_tk *tk);

/** Fill names and mode. */
void wb_tk_init(wb_tk *tk, const wb_endpoint_setup *endpoint, const wb_kit_options *options,
                FILE *out);
/** Make the queues. @return WB_OK, or the class, with `error` filled. */
int wb_tk_install(wb_tk *tk, wb_error *error);
/** Close the shared sessions. */
void wb_tk_end(wb_tk *tk);

/* ---- instances and sessions ------------------------------------------------------------ */

/** The name of a queue of the case's own: nobody else has it. @return `name`. */
const char *wb_tk_own_name(wb_kit *kit, char name[WB_TK_OWN_SIZE]);

/** Make an instance for an endpoint of that name; types: none but for MAIN and OTHER.
 *  @return NULL when it failed, which is noted. Destroyed after the case. */
wb_tk_instance *wb_tk_instance_named(wb_kit *kit, const char *name, int mode);
wb_tk_instance *wb_tk_instance_make(wb_kit *kit, int queue, int mode);
/** The same for an endpoint with other limits: `change` is called before create(). */
wb_tk_instance *wb_tk_instance_changed(wb_kit *kit, int queue, int mode,
                                       void (*change)(wb_endpoint_info *info));
wb_tk_instance *wb_tk_instance_as(wb_kit *kit, const char *name, int mode,
                                  void (*change)(wb_endpoint_info *info));
/** The same, and install it: a server may take shorter names only. Then create() or install() says so, and the case is
 *  skipped. @return NULL: skipped, or failed. */
wb_tk_instance *wb_tk_instance_if_taken(wb_kit *kit, const char *name, int mode);

/** Open a session for what `purpose` says. The shared receiver makes room first.
 *  @return NULL when it failed, which is noted. Closed after the case. */
wb_tk_session *wb_tk_open_for(wb_tk_instance *instance, uint32_t purpose, uint32_t prefetch);
/** The same with an instance of its own, to receive and to send. */
wb_tk_session *wb_tk_open(wb_kit *kit, int queue, int mode, uint32_t prefetch);

/** What it had in hand is no longer valid. Closing twice is allowed. */
void wb_tk_close(wb_tk_session *s);
/** Skip the case where one session's messages cannot be handed to another: what keeps the
 *  order per key holds them back. @return whether it did. */
int wb_tk_skips_for_order(wb_kit *kit);
/** Skip the case by the name of the optional function that the plugin lacks. */
#define WB_TK_LACKS(kit, function)                                                                 \
    wb_kit_lacks((kit), WB_HAS(wb_tk_of(kit)->ops, wb_transport_ops, function), #function)

/** Close and open again; a server that is not back yet is waited for. @return 0: failed. */
int wb_tk_reopen(wb_tk_session *s);

/** The shared session that only sends, and the shared one that receives MAIN and sends; both
 *  in tk->mode. The queue is empty when the receiver is handed out, or it is noted that it could not be
 *  emptied: get it before anything is sent. NULL: failed. */
wb_tk_session *wb_tk_sender(wb_kit *kit);
wb_tk_session *wb_tk_receiver(wb_kit *kit);

/** Empty MAIN of what this case may have left there, with the shared receiver. What fails is its failure. */
void wb_tk_sweep(wb_kit *kit);

/** Two sessions of MAIN side by side, which both get messages. For a transport that gives
 *  each key to one session, waits until both have some.
 *  @return 0: failed, or skipped when one of them gets everything. */
int wb_tk_open_pair(wb_kit *kit, uint32_t prefetch, wb_tk_session *ret_pair[2]);

/** Note a result that is not WB_OK, and one that came without words. @return whether OK. */
int wb_tk_is_ok(wb_kit *kit, int result, const wb_error *error, const char *doing);

int64_t wb_tk_in(const wb_tk *tk, int64_t duration);

/* ---- processes that die ---------------------------------------------------------------- */

/** Make them; before anything of the plugin runs. */
void wb_tk_victims_spawn(wb_tk *tk);
/** Have one receive that many messages of MAIN, all that is there, and kill it.
 *  @return 0: it did not receive them, which is noted. */
int wb_tk_victim_dies(wb_kit *kit, size_t count);
/** The same; it has acknowledged the first `gone` of them for good before. */
int wb_tk_victim_acknowledges(wb_kit *kit, size_t count, size_t gone);
/** Have one receive a message of MAIN, send a letter to OTHER and acknowledge in a transaction, and kill it that
 *  long after commit() was called, about. */
int wb_tk_victim_commits(wb_kit *kit, int mode, int64_t alive);
void wb_tk_victims_end(wb_tk *tk);

/* ---- messages -------------------------------------------------------------------------- */

/** One operation and what it points to. */
typedef struct wb_tk_letter {
    wb_operation operation;
    char id[WB_TK_MARK_SIZE + 16];
    char mark[WB_TK_MARK_SIZE];
    char body[16];
    wb_header headers[2];
} wb_tk_letter;

/** "NAME.NUMBER" of the case that runs. */
void wb_tk_mark(const wb_tk *tk, char mark[WB_TK_MARK_SIZE]);

/** Headers as the host hands them out, with their sizes: of two literals, and of two texts. */
#define WB_TK_HEADER(name, value) { "" name "", "" value "", sizeof(name) - 1, sizeof(value) - 1 }
wb_header wb_tk_header(const char *name, const char *value);

/** A message with that number for a queue; the key may be NULL. May be changed before it is
 *  sent, as long as its id or its first header stays. */
void wb_tk_write(wb_kit *kit, wb_tk_letter *letter, const char *destination, const char *key,
                 size_t number);

/** Send one window; every operation must be confirmed. @return 0: failed. */
int wb_tk_send(wb_tk_session *s, wb_operation *const *operations, size_t count);
/** Send a letter. */
int wb_tk_send_letter(wb_tk_session *s, wb_tk_letter *letter);
/** Send one whose `what` has that size: a transport may refuse it as too large, if it is more than
 *  WB_TK_BODY_SURE. @return 0: it was refused, or failed. */
int wb_tk_send_large(wb_tk_session *s, wb_tk_letter *letter, const char *what, size_t size);
/** Send messages with numbers from `first` on, in one window; the key may be NULL. */
int wb_tk_send_numbers(wb_tk_session *s, const char *destination, const char *key, size_t first,
                       size_t count);

/** The number of a message. */
size_t wb_tk_number(const wb_incoming *message);
/** Whether it is one of the case that runs. */
int wb_tk_is_ours(const wb_tk *tk, const wb_incoming *message);

/* ---- receiving ------------------------------------------------------------------------- */

/** One receive() until a deadline; what is foreign is acknowledged. What came is added to what
 *  is in hand. @return the class. A failure is not noted. */
int wb_tk_take(wb_tk_session *s, size_t max, int64_t deadline, wb_error *error);
/** Receive until that many more are in hand. @return whether they came; if not, it is noted. */
int wb_tk_collect(wb_tk_session *s, size_t count);
/** The same for as many of them as the session has room for at once: those that come within WB_TK_QUIET of each other.
 *  @return how many, one at least; 0: failed. */
size_t wb_tk_collect_some(wb_tk_session *s, size_t count);
/** Whether nothing comes for a while; what comes is noted. */
int wb_tk_expect_quiet(wb_tk_session *s, int64_t duration);
/** Whether there is nothing before what is sent now; what comes is noted and acknowledged.
 *  The session needs room for one message. */
int wb_tk_expect_empty(wb_tk_session *s);

/** Whether limits() says WB_LIMITS_RETURNS_FIRST. */
int wb_tk_returns_first(wb_kit *kit);
/** Whether in_hand[at] and following are `first` and following, in order. */
int wb_tk_expect_numbers(wb_tk_session *s, size_t at, size_t first, size_t count);
/** After close and open again: of messages numbered below `count` those from `sure` on come, and none
 *  below `gone`; the others may: their acknowledgement was on its way. Each once, and nothing after
 *  them; they are acknowledged. */
void wb_tk_expect_back(wb_tk_session *s, size_t count, size_t sure, size_t gone);
/** Whether `numbers` are in hand, in any order, each once and nothing else. */
int wb_tk_expect_set(wb_tk_session *s, const size_t *numbers, size_t count);

/** Acknowledge or give back in_hand[at] and following, in one call. */
int wb_tk_acknowledge(wb_tk_session *s, size_t at, size_t count);
int wb_tk_give_back(wb_tk_session *s, size_t at, size_t count);
/** Acknowledge all. */
int wb_tk_finish(wb_tk_session *s);

/* ---- the cases, by topic: one table a file --------------------------------------------- */

extern const wb_kit_case wb_tk_descriptor_cases[], wb_tk_life_cases[], wb_tk_content_cases[],
    wb_tk_limits_cases[], wb_tk_send_cases[], wb_tk_harm_cases[], wb_tk_receive_cases[],
    wb_tk_prefetch_cases[], wb_tk_memory_cases[], wb_tk_stop_cases[], wb_tk_acknowledge_cases[],
    wb_tk_held_cases[], wb_tk_loss_cases[], wb_tk_replies_cases[], wb_tk_delay_cases[], wb_tk_expiry_cases[],
    wb_tk_order_cases[], wb_tk_transaction_cases[], wb_tk_rerun_cases[], wb_tk_queues_cases[], wb_tk_removal_cases[];
extern const size_t wb_tk_descriptor_count, wb_tk_life_count, wb_tk_content_count,
    wb_tk_limits_count, wb_tk_send_count, wb_tk_harm_count, wb_tk_receive_count,
    wb_tk_prefetch_count, wb_tk_memory_count, wb_tk_stop_count, wb_tk_acknowledge_count,
    wb_tk_held_count, wb_tk_loss_count, wb_tk_replies_count, wb_tk_delay_count, wb_tk_expiry_count, wb_tk_order_count,
    wb_tk_transaction_count, wb_tk_rerun_count, wb_tk_queues_count, wb_tk_removal_count;

/** At the end of a topic's file. */
#define WB_TK_CASES(topic) const size_t wb_tk_##topic##_count = \
    sizeof wb_tk_##topic##_cases / sizeof *wb_tk_##topic##_cases

#endif

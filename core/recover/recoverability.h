/* SPDX-License-Identifier: Apache-2.0
 *
 * Recoverability: what becomes of a message that failed, and the copy of it that goes to
 * the error queue: original body and headers, plus why, where and when.
 */
#ifndef WB_RECOVER_RECOVERABILITY_H
#define WB_RECOVER_RECOVERABILITY_H

#include <waybill/sys/transport.h>

#include "core/base/arena.h"
#include "core/message/operations.h"
#include "core/message/outgoing.h"

/* Kinds of failure: the ExceptionType of the error queue's headers, by which tools group. */
#define WB_FAILURE_HANDLER "Waybill.HandlerFailed"
#define WB_FAILURE_UNRECOVERABLE "Waybill.Unrecoverable"
#define WB_FAILURE_NO_HANDLER "Waybill.NoHandler"
#define WB_FAILURE_NO_ID "Waybill.NoMessageId"
#define WB_FAILURE_TOO_LARGE "Waybill.MessageTooLarge"
#define WB_FAILURE_UNREADABLE "Waybill.UnreadableMessage"
#define WB_FAILURE_CRASHES "Waybill.DeliveredTooOften"
#define WB_FAILURE_DISPATCH "Waybill.DispatchFailed"

/* Limits of an incoming message (its body's is the endpoint's body_max): the users' headers;
 * those of the platform (NServiceBus.*, $.diagnostics.*), so that a message which a handler gave
 * all it may, or which comes back from the error queue, is not refused where it arrives; names
 * and values of all of them together, in bytes. */
#define WB_INCOMING_HEADERS_MAX 256
#define WB_PLATFORM_HEADERS_MAX 64
#define WB_INCOMING_HEADERS_SIZE_MAX (64 * 1024)
/** What a failed message may have more: the reasons that whoever moved it added. A stack trace of .NET takes a third of it. */
#define WB_FAILURE_HEADERS_SIZE_MAX (64 * 1024)

/** Why a message failed. */
typedef struct wb_failure {
    const char *kind;  /* WB_FAILURE_x; NULL: it has not failed */
    char *reason;      /* malloc'ed, or NULL */
    unsigned attempts; /* failed attempts in this process */
    unsigned faults;   /* how often it alone met the server's trouble while others did not */
    int may_wait;      /* what failed may be mended by time: a delayed retry has a point */
    int64_t delay;     /* ns that its handler wants it to wait, or 0: as the policy says */
} wb_failure;

/** Remember why (the latest reason wins) and, if `counts`, that an attempt failed. */
void wb_failure_set(wb_failure *failure, const char *kind, const char *reason, int counts);
void wb_failure_clear(wb_failure *failure);

/* Whether a message that keeps others with its key waiting is retried later, out of its order. */
#define WB_ON_MESSAGE_FAILURE_BY_KEY 0 /* one with a key blocks, where the transport keeps the order */
#define WB_ON_MESSAGE_FAILURE_BLOCK 1  /* none is: immediate retries, then the error queue */
#define WB_ON_MESSAGE_FAILURE_DELAY 2  /* all are */

typedef struct wb_recoverability {
    unsigned immediate_retries;
    const char *error_queue;
    uint32_t delivery_limit; /* the broker's; 0: it has none */
    unsigned delayed_retries;
    int64_t delay_increment; /* ns */
    unsigned delay_jitter;   /* percent of the delay, at most */
    int on_failure;          /* WB_ON_MESSAGE_FAILURE_x */
} wb_recoverability;

/** What a handler that fails wants for its message instead of what the policy says. */
typedef struct wb_wish {
    enum { WB_WISH_NOTHING, WB_WISH_DISCARD, WB_WISH_MOVE, WB_WISH_RETRY_AFTER } kind;
    char queue[256]; /* of WB_WISH_MOVE */
    int64_t delay;   /* of WB_WISH_RETRY_AFTER, ns */
} wb_wish;

/** Whether a message that failed this often goes to the error queue now. */
int wb_recover_is_exhausted(const wb_recoverability *policy, const wb_failure *failure);

/** Whether a message met the server's trouble so often, alone and while others did not, that
 *  it must be its own. At least WB_FAULTS_MIN times are forgiven: a server that restarts is
 *  nobody's fault. */
#define WB_FAULTS_MIN 3
int wb_recover_is_faulty(const wb_recoverability *policy, const wb_failure *failure);

/** Whether a header comes from an earlier trip through the error queue. A message that is
 *  moved there again does not keep it. */
int wb_recover_is_failure_header(const wb_header *header);

/** How far a copy for the error queue may be cut down when the broker refuses it as it is: each
 *  step does what the one before did, and more. The body is never cut. */
#define WB_TRIM_NOTHING 0
#define WB_TRIM_STACK_TRACE 1
#define WB_TRIM_REASON 2
#define WB_TRIM_HEADERS 3 /* the largest, until 32 KiB remain; with each step half of that */
#define WB_TRIM_MAX 8

/** A failed message on its way to the error queue. */
typedef struct wb_failed_message {
    const wb_incoming *incoming;
    const wb_failure *failure;
    const char *type; /* of its handler, or NULL */
    unsigned trim;    /* WB_TRIM_x */
    const char *failed_queue; /* where a retry of it goes; NULL: the endpoint's own */
    int keeps_failure; /* 1: it had failed before it came to this endpoint, which cannot keep it: it goes on with where and why it
                          failed, and a header Waybill.NotKept */
} wb_failed_message;

/** An operation that is refused for good, as a message that failed. Points to what it points to. */
wb_incoming wb_recover_incoming(const wb_operation *operation);

/** The operation that moves a message to the error queue: original body and headers, and why it
 *  failed. What was cut is named in its header Waybill.Trimmed. Lives as long as the arena;
 *  points into `incoming`. */
wb_operation *wb_recover_error_operation(const wb_recoverability *policy, const wb_origin *origin,
                                         const wb_failed_message *message, wb_arena *arena,
                                         wb_operation_list *list);

#endif

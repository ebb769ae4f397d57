/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport SPI: receives, sends, acknowledges.
 *
 * Life cycle: create (main thread, no network) -> install or verify (main thread,
 * connects for itself) -> open one session a worker (worker thread) -> close ->
 * destroy (main thread, all sessions closed). A session is used by one thread at a
 * time; only interrupt() and release_prefetched() may race with the others.
 *
 * A session that returned WB_NOT_CONNECTED or WB_IN_DOUBT is closed and opened
 * again by the host, with back-off; everything received on it and not acknowledged
 * is then delivered again by the broker. Closing gives unacknowledged messages
 * back to the queue. Two answers are different: WB_IN_DOUBT with WB_CAUSE_SENDING, see
 * send(), and WB_NOT_CONNECTED with WB_CAUSE_SERVER, see position_end().
 *
 * A worker thread has a stack of at least WB_WORKER_STACK bytes, whatever the system's
 * default is: a client library may follow the nesting of what it decodes.
 *
 * receive() and send() have a deadline. What has none ends by itself all the same, by time-outs of
 * the plugin: while a call runs its worker cannot stop.
 *
 * An endpoint with further queues (wb_endpoint_info.queues, WB_CAP_QUEUES): each of them is treated as the one of its name
 * is, but where a line below says otherwise:
 *  - install() makes and verify() looks for each, and what is missing is named; examine() looks at each;
 *  - receive() returns messages of all of them, and what waits in one never keeps those of another waiting for good: each
 *    gets its turn, however much is in the others. The order of one queue says nothing of another's;
 *  - a message goes back to the queue it came from, and is counted there; all that is said of messages in hand counts for
 *    all of them together. They are acknowledged and given back in one call, and one transaction covers them;
 *  - a prefetch may count for each queue by itself;
 *  - limits() says the lowest limit that is known of one; depth() counts what waits in all of them, and is_installed
 *    means that all are there;
 *  - with WB_CAP_POSITION no partition of one has the name of another's;
 *  - uninstall() and take_over() are about the endpoint's own queue, the one of its name: the further ones stay.
 *
 * Change log: 1.0 first version; appended before its release: depth, uninstall, unsubscribe, subscriptions,
 * take_over, examine, WB_OPERATION_PARTLY_SENT, wb_transport_limits.flags. WB_CAP_QUEUES: what an endpoint with further queues is, above.
 */
#ifndef WAYBILL_SYS_TRANSPORT_H
#define WAYBILL_SYS_TRANSPORT_H

#include <waybill/message.h>
#include <waybill/sys/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wb_transport wb_transport;                 /* the plugin's instance */
typedef struct wb_transport_session wb_transport_session; /* the plugin's session */

/** One message received. Size first, append-only. Allocated and owned by the session; valid until it is
 *  acknowledged, given back, or the session is closed. Strings are NUL-terminated
 *  beyond their size, and a header's are never NULL. With WB_CAP_HEADER_ORDER the order of headers is kept; when a
 *  message is delivered again it may be kept among headers of one name only. Broker properties that have a header
 *  name of NServiceBus (content type, reply-to, correlation id, type) are among
 *  the headers; bookkeeping headers of the broker are not. */
typedef struct wb_incoming {
    size_t struct_size;
    const char *id; /* NULL when the message has none */
    size_t id_size;
    const wb_header *headers;
    size_t header_count;
    const void *body;
    size_t body_size;
    const char *key; /* optional */
    size_t key_size;
    /** How often it was delivered before, as far as the transport knows; 0 for a
     *  first delivery. Counts deliveries that ended without acknowledgement: those given
     *  back, and those to a process that died. A session that was closed may count. */
    uint32_t delivery_count;
    uint32_t reserved;
    /** NULL, or why the message could not be read completely; it then goes to the
     *  error queue with this reason. */
    const char *problem;
    /** With WB_CAP_POSITION: where it is. Two messages of one partition never have the same position, and
     *  one that was sent later never has a lower one; there may be gaps. A session hands out a partition's
     *  messages in ascending order, beginning with one below which all were acknowledged or dropped; and
     *  none while another session of the process has some of that partition in hand, unless the partition
     *  was taken away and has come back. 1 to 300 bytes. */
    const char *partition;
    size_t partition_size;
    uint64_t position; /* below INT64_MAX */
} wb_incoming;

/* Kinds of outgoing operation on the wire. A reply is a send. */
#define WB_OPERATION_SEND 1
#define WB_OPERATION_PUBLISH 2

/* Flags of an operation. */
#define WB_OPERATION_NON_PERSISTENT 1u
/** An unroutable send is WB_REJECT with WB_CAUSE_UNROUTABLE, never a loss. The
 *  host sets it on every send. */
#define WB_OPERATION_MANDATORY 2u
/** Set by send() beside WB_REJECT: what is refused is, or may be, in some of the places it goes to all the same (an event that
 *  one of several topics has and another refuses). Nobody is told of it that it was not sent. */
#define WB_OPERATION_PARTLY_SENT 4u

/** One message to send, complete with its headers. Size first, append-only. Owned by the host. Every size is set: 0 is empty, and
 *  nothing is to be measured by a NUL byte. */
typedef struct wb_operation {
    size_t struct_size;
    int32_t kind;
    uint32_t flags;
    /** SEND: the queue. PUBLISH: the event type. Its header NServiceBus.EnclosedMessageTypes
     *  may name types it is derived from as well (sys/types.h walks them): whoever subscribed
     *  to any of them gets it, an endpoint's queue once if the transport can tell. A base whose
     *  name nobody could subscribe to is passed over. */
    const char *destination;
    const char *id;
    size_t id_size; /* 0 only for a message without id on its way to the error queue */
    const wb_header *headers;
    size_t header_count;
    const void *body;
    size_t body_size;
    const char *key;
    size_t key_size;
    /** Filled by send(): WB_OK confirmed by the broker as durable; WB_REJECT can
     *  never succeed; anything else: not known to be sent. */
    int32_t result;
    /** Filled by send() with WB_REJECT: WB_CAUSE_x. */
    int32_t cause;
    /** Filled by send() with WB_REJECT: why, in words; owned by the session, valid
     *  until its next call. */
    const char *reason;
    /** 0, or when it is due: nanoseconds since 1970 UTC, by this machine's clock as it is when
     *  send() is called; compare it then, that clock may be set. Only a transport with WB_CAP_DELAY is
     *  handed a time that has not come yet; send() confirms that the message waits durably, to
     *  be delivered not before then. Whatever it takes for that beyond the message's own headers
     *  (a header that says how long, say) is the transport's. A time that has come is no delay. */
    int64_t deliver_at;
} wb_operation;

/* What a session is opened for. */
#define WB_SESSION_RECEIVE 1u
#define WB_SESSION_SEND 2u

/** Stack of a worker thread, at least. */
#define WB_WORKER_STACK ((size_t)16 << 20)

/** Nobody can say. */
#define WB_LIMIT_UNKNOWN UINT32_MAX

/* Flags of wb_transport_limits. */
/** What a process had in hand when it ended is there again at once, and each queue hands it out before any message that was
 *  never delivered. A broker that may be told of a death late does not say so. Without outbox, or where
 *  the broker has a delivery limit, an endpoint begins with one worker, which takes message by message until it gets one that was
 *  never delivered, ten seconds at most, and half a second at least without this flag. (Not in mode none, nor without limit where
 *  keys keep their order.) */
#define WB_LIMITS_RETURNS_FIRST 1u

/** What the broker does to the endpoint's messages. Size first, append-only; zeroed by
 *  the host before limits(). */
typedef struct wb_transport_limits {
    size_t struct_size;
    /** The highest delivery_count the broker hands out: one that comes back once more is
     *  dropped or dead-lettered. 0: it never drops. WB_LIMIT_UNKNOWN. The host gives a
     *  message up at it or below, and refuses to run where it is too low for that. */
    uint32_t delivery_limit;
    uint32_t reserved;
    uint32_t flags; /* WB_LIMITS_*; set when struct_size covers it: an older host's table ends before */
    uint32_t reserved_2;
} wb_transport_limits;

/** What waits for an endpoint. Size first, append-only; zeroed by the host before depth(). */
typedef struct wb_transport_depth {
    size_t struct_size;
    /** Messages that nobody acknowledged, as far as the broker tells: also those that a session has in hand, unless
     *  it counts that session among `readers`. */
    uint64_t messages;
    uint32_t readers;      /* sessions that receive now; 0 where nobody can say */
    int32_t is_installed;  /* 1: install() was here, and the endpoint's queue is there */
} wb_transport_depth;

/* Flags of uninstall(). */
/** Also what waits: it is lost. */
#define WB_UNINSTALL_MESSAGES 1u
/** Also the endpoint's error queues, each if it is empty. They are others', too. */
#define WB_UNINSTALL_ERROR_QUEUES 2u

/** Size first, append-only. */
typedef struct wb_transport_ops {
    size_t struct_size;

    /** Make an instance. No network. `host`, `endpoint` and `config` stay valid
     *  until destroy(). `waybill check` makes one and destroys it, and so does `waybill run` before
     *  it makes the one it keeps: refuse here whatever can be known now. A text that begins with
     *  the name of an option ("port = ...", "option \"port\" ...") is reported at that option's
     *  line, others at that of the plugin's group; what is logged as a warning `check` shows alike.
     *  @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG, or the cause of what an option names
     *  (WB_CAUSE_MISSING for a directory that is not there). */
    int (*create)(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error);
    void (*destroy)(wb_transport *transport);

    /** Optional. What a shared transaction would be shared on (the file's canonical
     *  path, say), for WB_MODE_TRANSACTION_SCOPE; pure; the host compares it with
     *  the persistence's. The answer is written to `buffer`, with its NUL byte.
     *  @return WB_OK, or WB_REJECT when there is none, or it does not fit: what is cut may be equal to another. */
    int (*shared_resource)(const void *config, char *buffer, size_t size);

    /** Make queues and subscriptions: the endpoint's queue, its error queues and audit queue, a
     *  subscription to each of its types. Idempotent.
     *  @return WB_FATAL with WB_CAUSE_MISMATCH when one exists with other arguments. */
    int (*install)(wb_transport *transport, wb_error *error);

    /** Check that what install() makes is there and usable. Changes nothing. What is not there is WB_FATAL with
     *  WB_CAUSE_MISSING: the text names it, of several the queue, and says what to do: run waybill install. Main
     *  thread; or, before an endpoint is started again, a thread of its own on an instance that nobody
     *  else uses. */
    int (*verify)(wb_transport *transport, wb_error *error);

    /** Connect. `purpose` is a mask of WB_SESSION_x. The session prefetches at most
     *  `prefetch` messages (see set_prefetch), 0 where it only sends. *ret_session is looked at with WB_OK alone, and
     *  is not NULL then. */
    int (*open)(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                wb_transport_session **ret_session, wb_error *error);
    /** Give back what is unacknowledged, disconnect, free. Never fails. */
    void (*close)(wb_transport_session *session);

    /** How many messages the broker may hand out ahead of acknowledgements, those in hand and those
     *  read ahead together. Called
     *  when the size of batches changes; may be below what is in hand. Optional. The host
     *  begins with 1 and follows the measured time of its handlers. */
    int (*set_prefetch)(wb_transport_session *session, uint32_t prefetch, wb_error *error);

    /** Take messages that are already there: waits until `deadline` for the first,
     *  never for a second; one that has passed asks for what is there. Returns pointers to at most `max`
     *  messages, which may be more or less than the prefetch has left: what is not returned stays read
     *  ahead. With
     *  WB_MODE_NONE they are removed from the queue before the call returns, and
     *  acknowledge() only releases their memory. While one session receives, what one session sent to the queue
     *  comes in that order, but for what comes back; the host relies on order for one key alone
     *  (WB_CAP_ORDER_PER_KEY).
     *  @return WB_OK with *ret_count = 0 when the deadline passed or interrupt() was
     *  called. */
    int (*receive)(wb_transport_session *session, int64_t deadline, const wb_incoming **ret_messages,
                   size_t max, size_t *ret_count, wb_error *error);

    /** Remove messages from the queue for good; they are invalid afterwards. Where the broker confirms no
     *  acknowledgement, one that was sent may be lost with the connection: the message comes again.
     *  What costs a request, or waits for one, may be put off until the next call. With `count` = 0 it may not: on
     *  return all that was acknowledged stays so whatever becomes of this process, as far as the broker can tell; the
     *  host asks for that before it calls a handler that may end the process. WB_RETRY: not yet, and nothing is lost.
     *  In a transaction WB_RETRY is undone with it, as of send().
     *  Messages may be acknowledged in any order and number. With WB_CAP_ORDER_PER_KEY
     *  one behind a message that is still in hand may be delivered again if the session
     *  ends before that one is acknowledged, too. */
    int (*acknowledge)(wb_transport_session *session, const wb_incoming *const *messages,
                       size_t count, wb_error *error);

    /** Give messages back to the queue at once, for anybody; they are invalid
     *  afterwards. */
    int (*give_back)(wb_transport_session *session, const wb_incoming *const *messages,
                     size_t count, wb_error *error);

    /** Send all operations in one window and wait until `deadline` for the broker's
     *  confirmations. Every operation's result is set on return. Inside begin() and
     *  commit() the operations become visible with the commit.
     *  @return WB_OK when every result is WB_OK or WB_REJECT; otherwise the class of
     *  what went wrong, and the host sends again what is not WB_OK. WB_IN_DOUBT with
     *  WB_CAUSE_SENDING: confirmations did not come, and sending alone is to begin anew. The
     *  session stays open, what was received on it stays in hand and can be acknowledged,
     *  and the next send() makes a new way out. Not inside begin() and commit(). */
    int (*send)(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error);

    /** Optional, for WB_MODE_SENDS_ATOMIC and WB_MODE_TRANSACTION_SCOPE: one
     *  transaction over the sends and acknowledgements that follow. Called after
     *  receive(), before the handlers run. */
    int (*begin)(wb_transport_session *session, wb_error *error);
    int (*commit)(wb_transport_session *session, wb_error *error);
    /** Undo the sends and acknowledgements since begin(): the messages are still
     *  received and unacknowledged. The host calls it behind a begin() that failed, too, and where
     *  none was called: what such a begin() has begun is undone, and without a transaction it does
     *  nothing and is WB_OK. */
    int (*rollback)(wb_transport_session *session, wb_error *error);
    /** Optional, for WB_MODE_TRANSACTION_SCOPE: the handle a persistence joins. NULL: a handler has closed it, and its message
     *  has failed; rollback() is called next, and may open another. */
    void *(*native)(wb_transport_session *session);

    /** Make a receive() that waits, or the next one, return early. Any thread. */
    void (*interrupt)(wb_transport_session *session);

    /** Optional. What the broker does to this endpoint's messages. Main thread, after
     *  verify(); may connect. Not being able to tell is no error: WB_LIMIT_UNKNOWN. Without it the host takes the
     *  broker for one that never drops a message, however often it comes back: where one may, this is not optional, nor
     *  is WB_CAP_DELIVERY_COUNT, without which the host does not see the limit come near. Its
     *  flags say the rest; without it none is set. */
    int (*limits)(wb_transport *transport, wb_transport_limits *limits, wb_error *error);

    /** Optional. The endpoint stops: ask the broker for no more. receive() goes on to
     *  return what had already been handed out, and then nothing, without waiting. So an
     *  orderly stop handles what it has instead of giving it back, which would count as a
     *  delivery. Worker thread. */
    int (*stop_receiving)(wb_transport_session *session, wb_error *error);

    /** Optional. Give back at once what was prefetched and not returned by receive() yet,
     *  and prefetch nothing until the next receive(): the host calls it when a handler takes
     *  long, so that others get those messages. Any thread, also while another call of
     *  the session runs; never waits for the network. */
    void (*release_prefetched)(wb_transport_session *session);

    /** With WB_CAP_POSITION: the position that the next message sent to this partition gets at least, as the
     *  broker says now. Any session. @return WB_REJECT when there is no such partition (any more), WB_NOT_CONNECTED
     *  with WB_CAUSE_SERVER at once when it is of this partition alone that the broker cannot say. */
    int (*position_end)(wb_transport_session *session, const char *partition, size_t partition_size,
                        uint64_t *ret_end, wb_error *error);

    /* For who removes or renames an endpoint. Main thread, on an instance without sessions; they connect for
     * themselves, as install() does, and what is done already is no error: whoever died in the middle calls again. */

    /** With WB_CAP_UNINSTALL: what waits in the endpoint's queue. One that is not there holds nothing. Also, while other
     *  instances of the endpoint receive, a thread of its own on an instance that nobody else uses. */
    int (*depth)(wb_transport *transport, wb_transport_depth *depth, wb_error *error);
    /** With WB_CAP_UNINSTALL: remove the endpoint's queue, and what leads to it, its subscriptions too. What others
     *  have a use for stays: error queues (but see WB_UNINSTALL_x), the audit queue, what events are
     *  published to. What a sender is told as soon as this has begun is that there is no such destination. What
     *  is still delayed to it is not lost and holds up nobody else's: it waits in the queue, or comes to the error
     *  queue when it is due.
     *  @return WB_REJECT when messages wait, unless WB_UNINSTALL_MESSAGES, or when sessions receive: the
     *  queue is still there, with all that was in it and all that leads to it. */
    int (*uninstall)(wb_transport *transport, uint32_t flags, wb_error *error);
    /** With WB_CAP_UNSUBSCRIBE: end the subscription of the endpoint's queue to each of these types. What
     *  waits stays. One that it has not is no error. */
    int (*unsubscribe)(wb_transport *transport, const char *const *types, size_t count, wb_error *error);
    /** Optional, with WB_CAP_UNSUBSCRIBE: visit the types that the endpoint's queue is subscribed to and install()
     *  bound. NULL: the broker does not tell, and the host has the persistence keep them. */
    int (*subscriptions)(wb_transport *transport, wb_subscription_fn visit, void *argument, wb_error *error);
    /** Optional, with WB_CAP_UNINSTALL: what would reach the endpoint `former` by other ways than its queue reaches
     *  this one: what the broker still delays, how far topics of events were read. After install(), before
     *  what waits is moved; `former` is still there, and its instances do not run. */
    int (*take_over)(wb_transport *transport, const char *former, wb_error *error);

    /** Optional. Look for what about the broker and its settings would bite this endpoint, beside what verify() fails
     *  or warns of, which is not said again. Connects for itself and changes nothing, whether verify() succeeded or not;
     *  main thread. What the user may not ask, or the broker does not tell, is at most a note.
     *  @return WB_OK, also with findings; otherwise nothing could be looked at. */
    int (*examine)(wb_transport *transport, const wb_examination *examination, wb_error *error);
} wb_transport_ops;

#ifdef __cplusplus
}
#endif
#endif

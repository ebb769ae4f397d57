/* SPDX-License-Identifier: Apache-2.0
 *
 * The observer SPI: is told what becomes of messages, and asks for nothing. The plugin "otlp" makes
 * spans of what it hears; an audit trail or a test can be another one.
 *
 * Life cycle: create (main thread, no network) -> start (main thread) -> started, handled, failed, sent
 * (many threads, at the same time) -> stop (main thread; no other call runs or comes) -> destroy.
 * `waybill check` creates and destroys one. An endpoint has one at most.
 *
 * Whoever is told stands in a message's way: the calls between start() and stop() copy what they want,
 * and return. They never wait for a network, a disk or a lock that is held during either; what cannot be
 * kept is dropped, counted, and told of in a line now and then. Nothing that an observer does or does not
 * do changes what becomes of a message.
 *
 * What is told is as true as the counts of waybill(1): handled, once the effects are committed; failed, each
 * attempt that counts, and one whose handler discards the message; sent, what a transport has confirmed. A process
 * that ends in between has told of less than it did, and one that dispatches again what was not marked tells of it
 * again: the same span. A message may fail when it was told of as handled, since the broker refuses what it sends; without
 * outbox it is handled once more then. Inside a transport transaction, what is sent is told before it is committed.
 *
 * Not told of: duplicates, copies for error and audit queues, what `waybill send` sends; the sending of a message whose
 * `traceparent` its program has set, which goes on as it is, or that has no room for one; what one endpoint dispatches for
 * a session of another one, whose program died; and what was stored before the endpoint had an observer.
 *
 * Traces are those of W3C Trace Context (https://www.w3.org/TR/trace-context-1/). A message that names none
 * begins one; of one that has neither a trace nor an id, nothing is known: wb_trace is all zero. Where an
 * endpoint has an observer, what it sends carries in `traceparent` the span of its sending, which is stored
 * with it. Ids follow from ids, so that every process and every attempt finds the same:
 *
 *   trace_id of a trace that begins   the endpoint's name and the message's id
 *   span_id of a handling             the endpoint's name and the message's id
 *   span_id of a sending              the endpoint's name, the message's id, its destination, and the id of the message
 *                                     whose handling asked for it
 *
 * and an attempt that failed has a random one. The span of a sending is a child of that of the handling which
 * asked for it, unless a program says that the message is related to another one; a handling is a child of the span that the
 * message names. What SQL wrote (waybill.conf(5), sql_api) gets its `traceparent` when it leaves: it is the same each time as long
 * as the observer is.
 *
 * Change log: appended to 1.0 before its release.
 */
#ifndef WAYBILL_SYS_OBSERVER_H
#define WAYBILL_SYS_OBSERVER_H

#include <waybill/sys/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wb_observer wb_observer; /* the plugin's instance */

#define WB_TRACE_ID_SIZE 16
#define WB_SPAN_ID_SIZE 8

/** The trace is kept by who records traces: the only flag of version 00. */
#define WB_TRACE_SAMPLED 1u

/** Where something stands in a trace. Fixed for ever. */
typedef struct wb_trace {
    unsigned char trace_id[WB_TRACE_ID_SIZE]; /* all zero: it is in none, and so are the next two */
    unsigned char span_id[WB_SPAN_ID_SIZE];
    unsigned char parent_id[WB_SPAN_ID_SIZE]; /* all zero: nothing is above it */
    uint32_t flags;                           /* WB_TRACE_x */
    uint32_t reserved;
} wb_trace;

/** One message that is handled, failed or was sent. Size first, append-only. Owned by the host, and valid during the call
 *  only. Texts end with a NUL byte; what a peer wrote (ids, types) may be no UTF-8. */
typedef struct wb_observation {
    size_t struct_size;
    wb_trace trace;
    /** When it began and when it ended, nanoseconds since 1970 UTC by this machine's clock: its handlers, from the first of
     *  the batch's call to the last; or the window of confirmations it was sent in. In failed(), `end` is when that was
     *  known. `end` is 0 in started(), and never before `begin` elsewhere. */
    int64_t begin;
    int64_t end;
    const char *id; /* of the message; NULL when it has none */
    size_t id_size;
    const char *type;        /* the first that it names, or the one its handler is for; NULL when it names none */
    const char *destination; /* sent: a queue, or for an event its type; else NULL */
    int32_t kind;            /* sent: WB_OPERATION_x (sys/transport.h); else 0 */
    /** Which attempt of this process it is, from 1; 0 when it was sent. */
    uint32_t attempt;
    /** failed: why, as the log and the error queue have it; else NULL. */
    const char *reason;
    size_t body_size;
} wb_observation;

/** Told of several at once. Any thread, many at the same time. */
typedef void (*wb_observe_fn)(wb_observer *observer, const wb_observation *const *observations, size_t count);

/** Size first, append-only. */
typedef struct wb_observer_ops {
    size_t struct_size;

    /** Make an instance. No network, no threads. What is said of create() of a transport is true here, too.
     *  `host`, `endpoint` and `config` stay valid until destroy(). */
    int (*create)(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_observer **ret_observer, wb_error *error);
    void (*destroy)(wb_observer *observer);

    /** Begin: start threads, whose signals are all blocked. Does not wait for a server, which may be away. After an
     *  error nothing is told, and stop() is not called.
     *  @return WB_OK, or WB_FATAL: the endpoint does not start. */
    int (*start)(wb_observer *observer, wb_error *error);
    /** Pass on what is still kept, until `deadline` at most; end all threads. The endpoints of a process share a second, and
     *  each has 50 ms at least. */
    void (*stop)(wb_observer *observer, int64_t deadline);

    /** Optional. Whether a trace that begins here is to be kept: 0 or 1, the same answer each time for the same
     *  id. NULL: each is. Of a trace that a peer began, the peer has said. Any thread. */
    int (*samples)(wb_observer *observer, const unsigned char trace_id[WB_TRACE_ID_SIZE]);

    /** With WB_CAP_SEES_STARTED: handlers are about to be called, an attempt begins. Not each is followed by handled() or
     *  failed(): a batch that is rolled back for one of its messages runs again. */
    wb_observe_fn started;
    /** With WB_CAP_SEES_HANDLED: these took effect. */
    wb_observe_fn handled;
    /** With WB_CAP_SEES_FAILED: an attempt failed; its effects are undone. */
    wb_observe_fn failed;
    /** With WB_CAP_SEES_SENT: the broker has these. */
    wb_observe_fn sent;
} wb_observer_ops;

#ifdef __cplusplus
}
#endif
#endif

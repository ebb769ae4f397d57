/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a message stands in a trace: W3C Trace Context, version 00 (https://www.w3.org/TR/trace-context-1/), and the
 * ids that follow from ids (sys/observer.h says which from which). Pure, but for the random span of an attempt that failed.
 */
#ifndef WB_MESSAGE_TRACE_H
#define WB_MESSAGE_TRACE_H

#include <waybill/message.h>
#include <waybill/sys/observer.h>
#include <waybill/sys/transport.h>

/** A string whose size is known. */
typedef struct wb_text {
    const char *value;
    size_t size;
} wb_text;

/** Who records traces: an endpoint's observer. Constant while it runs. */
typedef struct wb_tracing {
    const wb_observer_ops *ops;
    wb_observer *observer;
} wb_tracing;

/** "00-", 32 digits, "-", 16 digits, "-", 2 digits, and a NUL byte. */
#define WB_TRACE_PARENT_SIZE 56

/** Read a traceparent: trace_id, span_id and flags; parent_id is zero. Of a later version what version 00 has of it is
 *  taken. @return whether it is one; otherwise *ret_trace is all zero. */
int wb_trace_read(const char *value, size_t size, wb_trace *ret_trace);
/** Its trace, span and flags. */
void wb_trace_write(const wb_trace *trace, char text[WB_TRACE_PARENT_SIZE]);

/** Whether it is one at all. */
int wb_trace_is_set(const wb_trace *trace);

/** The handling of a message, of its own trace or of one that begins with it; all zero where it has neither trace nor id.
 *  @return whether the message names the trace. */
int wb_trace_handle(const wb_tracing *tracing, const wb_text *endpoint, const wb_header *headers, size_t count,
                    const char *id, size_t id_size, wb_trace *ret_trace);
/** An attempt of it that failed: a span of its own. */
void wb_trace_fail(wb_trace *handling);
/** The sending of an operation whose id and destination are set, for `cause`, which may be NULL; with no trace to
 *  follow one begins. `is_related`: it says that it is related to that cause, and so has the cause's handling as its
 *  parent. @return whether the cause names the trace. */
int wb_trace_send(const wb_tracing *tracing, const wb_text *endpoint, const wb_operation *operation,
                  const wb_message *cause, int is_related, wb_trace *ret_trace);
/** The same, of an operation that is complete, and perhaps stored long ago.
 *  @return whether the span it names is that of its sending by this endpoint: of others' it tells nothing. */
int wb_trace_sent(const wb_text *endpoint, const wb_operation *operation, wb_trace *ret_trace);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection to the broker.
 *
 * rabbitmq-c is used for the handshake, for TLS and as a codec. Reading and writing
 * are ours, because the library's own calls wait without limit, and because a batch
 * should leave in one write:
 *  - writing (amqp-write.c) puts encoded frames into `out` and flushes it;
 *  - reading (amqp-pump.c) takes whatever frames have arrived and gives each to the
 *    party it concerns: the state of the connection changes, nobody's call stack
 *    does. So anybody who holds the session's mutex may read at any time, the
 *    keeper included, and nothing is lost;
 *  - waiting serves all connections of a group at once, so that a wait for
 *    confirmations keeps the receiving connection alive, and the other way round.
 *
 * Nothing here is thread-safe: the session's mutex is held, or the connection is
 * local to one function. `write_deadline` alone is read without it.
 *
 * A connection fails once: `failure` then says why, everything else becomes a
 * no-operation, and only wb_amqp_connection_close() is left to do.
 */
#ifndef WB_AMQP_CONNECTION_H
#define WB_AMQP_CONNECTION_H

#include <stdatomic.h>

#include "plugins/common/rabbitmq.h"
#include "plugins/transport/amqp/amqp-map.h"
#include "plugins/transport/amqp/amqp-transport.h"

#define WB_AMQP_MAIN 1    /* the channel that consumes or publishes */
#define WB_AMQP_SCRATCH 2 /* the channel for declarations, which may close it */
#define WB_AMQP_CHANNELS 3

typedef struct wb_amqp_connection wb_amqp_connection;

typedef struct wb_amqp_channel {
    int open;
    int code; /* with which the broker closed it, 0 when it did not */
    char text[512]; /* the broker's words, and what to do about a missing permission */
} wb_amqp_channel;

/** Of one session: one that sends, and one for each queue that it receives from. */
#define WB_AMQP_MEMBERS_MAX (2 + WB_QUEUES_MAX)

/** Connections that are waited for together. */
typedef struct wb_amqp_group {
    wb_amqp_connection *members[WB_AMQP_MEMBERS_MAX]; /* NULL: none */
    size_t count; /* of the places that are used */
    int wake;     /* an eventfd that ends a wait; -1: none */
    /** NULL, or who is waited for. The others are read each 20 ms then: what comes for them gathers in their
     *  sockets, and is read in few large pieces instead of each as the broker writes it. */
    const wb_amqp_connection *awaited;
    int64_t all_read_at; /* when all were read last, had anything come */
} wb_amqp_group;

/** What a connection's owner does with frames that are not the connection's own:
 *  everything on its main channel, and the close of that channel. */
typedef void (*wb_amqp_frame_fn)(void *owner, const amqp_frame_t *frame);

struct wb_amqp_connection {
    wb_transport *transport;
    wb_amqp_group *group;
    amqp_connection_state_t state;
    int fd;
    int tls;
    size_t frame_max;
    int64_t heartbeat; /* as negotiated, ns; 0: none */
    int64_t sent_at;
    int64_t received_at;
    /** Until when whatever the owner does now may wait; 0: it has not begun. */
    int64_t deadline;
    /** While setting up: every answer is waited for anew, for connect_timeout. */
    int renews;
    wb_amqp_failure failure;
    int blocked; /* the broker said connection.blocked */
    int stuck;   /* it failed because the broker took no data until the deadline */
    wb_amqp_channel channels[WB_AMQP_CHANNELS];
    /* the one call that may be waiting for an answer */
    amqp_channel_t rpc_channel;
    amqp_method_number_t rpc_expected; /* 0: none */
    /* of the queue that was declared last */
    uint32_t declared_messages, declared_consumers;
    /* bytes encoded and not yet written; not used with TLS */
    unsigned char *out;
    size_t out_at, out_size, out_capacity;
    /** With TLS the library writes, and waits without limit: when not 0, the keeper
     *  shuts the socket down at this time. */
    _Atomic int64_t write_deadline;
    /** The owner's: do not read, there is enough to do. */
    int paused;
    /** The owner's: do not read at all, not even an answer that somebody waits for. */
    int gated;
    /** The library cannot read on: it could not decode a frame, and would try again for ever.
     *  Writing goes on, so what is in hand can be settled. */
    int deaf;
    /** Frames may be waiting inside of the library, where poll() does not see them. */
    int leftover;
    wb_amqp_frame_fn on_frame;
    /** NULL, or called when a frame cannot be decoded: returns 1 when the owner knows whose
     *  it is and the connection becomes deaf, 0 when it fails. */
    int (*on_unreadable)(void *owner);
    /** NULL, or called before every wait: returns 1 to be called again soon. */
    int (*before_wait)(void *owner);
    void *owner;
};

/** Whether the library takes the files of TLS: their form, and that key and certificate belong together. No network. */
int wb_amqp_connection_try_tls(wb_transport *transport, wb_error *error);

/** Connect and log in; `role` shows up in the broker's list of connections. The
 *  group's slot must be filled by the caller, before or after. On failure `failure` is
 *  filled: what the last host tried says. Waits at most connect_timeout twice for each host, and not beyond `deadline` unless it is 0. */
int wb_amqp_connection_open(wb_amqp_connection *connection, wb_transport *transport,
                            wb_amqp_group *group, const char *role);
/** Close politely within a second if the connection is in order, and free. May be
 *  called on one that is all zero. */
void wb_amqp_connection_close(wb_amqp_connection *connection);

/** Have a deaf connection closed by the broker, so that it has read all that was written;
 *  within a second. Nothing can be settled afterwards. */
void wb_amqp_connection_part(wb_amqp_connection *connection);

/* ---- writing --------------------------------------------------------------------- */

/** Whether a method can be put now without waiting. */
int wb_amqp_can_put(const wb_amqp_connection *connection);
/** Put one method. */
void wb_amqp_put_method(wb_amqp_connection *connection, amqp_channel_t channel,
                        amqp_method_number_t id, void *fields);
/** Put a content header and the body, in as many frames as needed; large content is
 *  flushed on the way, and cut off when the broker closes the channel meanwhile.
 *  `properties_size` is an upper bound of their encoded size.
 *  @return WB_OK; WB_REJECT when the properties do not fit a frame (nothing was put);
 *  or the failure's result. */
int wb_amqp_put_content(wb_amqp_connection *connection, amqp_channel_t channel,
                        amqp_basic_properties_t *properties, size_t properties_size,
                        const void *body, size_t body_size);
/** Write what the socket takes now. */
void wb_amqp_flush_some(wb_amqp_connection *connection);
/** Write everything, reading meanwhile.
 *  @return WB_OK, or the failure's result: past the deadline the connection has
 *  failed, because half a frame may have left. */
int wb_amqp_flush(wb_amqp_connection *connection);
/** Put a heartbeat when it is due and nothing else is about to leave. */
void wb_amqp_put_heartbeat(wb_amqp_connection *connection);

/* ---- reading --------------------------------------------------------------------- */

/** Wait until something happens on a connection of the group, or `deadline`, or
 *  when `interruptible` until the wake descriptor is readable (it is not read).
 *  Reads, writes what is pending, keeps heartbeats. One pass: the caller loops. */
void wb_amqp_wait(wb_amqp_group *group, int64_t deadline, int interruptible);

/** Send a method and wait for its answer.
 *  @return WB_OK; WB_REJECT when the broker closed the channel instead (its `code`
 *  and `text` say why); or the failure's result. */
int wb_amqp_rpc(wb_amqp_connection *connection, amqp_channel_t channel, amqp_method_number_t id,
                void *fields, amqp_method_number_t expected);
/** Messages are accepted: say so if the log says otherwise. */
void wb_amqp_log_unblocked(wb_transport *transport);
/** Open a channel unless it is open. */
int wb_amqp_channel_ensure(wb_amqp_connection *connection, amqp_channel_t channel);

/** Fail the connection, unless it has failed already; returns its result. */
int wb_amqp_connection_fail(wb_amqp_connection *connection, int result, int cause,
                            const char *format, ...) WB_PRINTF(4, 5);

#endif

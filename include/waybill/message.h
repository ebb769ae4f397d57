/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages as a handler sees them.
 *
 * Ownership: everything reachable from a wb_message belongs to Waybill and is
 * valid until the handler returns. Everything reachable from a wb_outgoing
 * belongs to the caller and is copied before the call returns.
 */
#ifndef WAYBILL_MESSAGE_H
#define WAYBILL_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sizes -------------------------------------------------------------------------------
 * What is handed over has a pointer and a size of its own (id and id_size, body and body_size):
 *
 *   a pointer and a size   those bytes, whatever they are; with 0 it is empty
 *   a pointer and WB_TEXT  a text: up to its NUL byte
 *   NULL and 0             not given
 *
 * NULL with a size is refused, and so is a name, an id or a key that is empty: what has a pointer
 * and was left without a size is a mistake more often than a wish. */

/** As a size: the text ends with its NUL byte. `.id = order, .id_size = WB_TEXT` */
#define WB_TEXT SIZE_MAX

/** A literal and its size, for two fields that follow each other: `.id = WB_STR("order-1")`,
 *  `.body = WB_STR("{}")`. (C alone: C++ does not mix fields with a name and such without.) */
#define WB_STR(literal) ("" literal), (sizeof("" literal) - 1)

/** One header: a pair of strings, UTF-8 by convention, exact by contract. Fixed for ever.
 *
 *  Incoming: neither is NULL, both sizes are set, and both strings are followed by a NUL byte
 *  that is not counted. Outgoing: sizes as above; an empty value is a value, and one must be given.
 *  What a transport is handed (waybill/sys/transport.h) has its sizes, without WB_TEXT. */
typedef struct wb_header {
    const char *name;
    const char *value;
    size_t name_size;
    size_t value_size;
} wb_header;

/** An outgoing header of two texts: `(wb_header[]){ WB_HEADER("Shop.User", user), .. }`. */
#define WB_HEADER(name, value) { (name), (value), WB_TEXT, WB_TEXT }

/** A message being handled. Size first, append-only: a field that a later version appends is there
 *  when struct_size covers it. Change log: 1.0 first version. */
typedef struct wb_message {
    size_t struct_size;
    /** Message id, 1 to 255 bytes of any value, followed by a NUL byte. */
    const char *id;
    size_t id_size;
    /** The type this handler was chosen for, e.g. "Sales.PlaceOrder"; of a generic type without
     *  assemblies, e.g. "Sales.Changed`1[[Sales.Price]]". A message that says it is of several
     *  types has the handler of each run, in the order in which it names them (the most derived
     *  first), in one transaction: one that fails undoes all, and each is then run again. For the
     *  handler of "*" the first type that the message names, or "" if it names none. Never NULL. */
    const char *type;
    /** Never NULL: an empty body points to a NUL byte. What follows a body that is not empty is not
     *  the message's and may not be read, not even to look for a NUL byte: a transport hands out the
     *  bytes where it received them. A body that is a text is printed with "%.*s". */
    const void *body;
    size_t body_size;
    /** In the order they were received. NULL if there are none. */
    const wb_header *headers;
    size_t header_count;
    /** 1 for the first attempt. Counts attempts of other processes where the
     *  transport counts deliveries. */
    uint32_t attempt;
    uint32_t reserved;
    /** What decided its order and partition, followed by a NUL byte; or NULL. */
    const char *key;
    size_t key_size;
} wb_message;

/** The value of the first header of that name (compared byte for byte), or
 *  NULL. NUL-terminated; use the header itself for values that hold NUL bytes. */
static inline const char *wb_message_header(const wb_message *message, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < message->header_count; i++) {
        const wb_header *header = &message->headers[i];
        if (header->name_size == size && memcmp(header->name, name, size) == 0)
            return header->value;
    }
    return NULL;
}

/** wb_outgoing.flags: hand the message to the broker at once and wait for its
 *  confirmation, whatever becomes of the transaction. It bypasses the outbox: if
 *  the handler then fails, the message was sent all the same, and a retry sends
 *  it again (with the same id). Refused (WB_REJECT) by the sqlite transport while
 *  the handler's own transaction holds the file of the queues. */
#define WB_IMMEDIATE 1u
/** wb_outgoing.flags: the broker may keep the message in memory only. */
#define WB_NON_PERSISTENT 2u

/** A message a handler asks for. Zero every field you do not set:
 *  `&(wb_outgoing){ .type = "Sales.OrderPlaced", .body = b, .body_size = n }`.
 *  Passed with its size, append-only (wb_handler_api.outgoing), without padding: what a host does
 *  not know (a flag, a field that a later version appends, unless it is 0) it refuses.
 *  Change log: 1.0 first version. */
typedef struct wb_outgoing {
    /** Required, a text: "Namespace.Name", as in NServiceBus. */
    const char *type;
    /** The receiving endpoint's queue, a text; on RabbitMQ also "queue:NAME", a queue of nobody's
     *  endpoint. Required by wb_send(), refused by wb_publish(), ignored by wb_reply(). */
    const char *destination;
    /** Any bytes; none given is an empty body. */
    const void *body;
    size_t body_size;
    /** Added to, or replacing, the headers Waybill sets itself. Names should differ: not
     *  every transport keeps the order of headers, or several of one name (RabbitMQ 4). */
    const wb_header *headers;
    size_t header_count;
    /** Message id, 1 to 255 bytes. Leave it out: Waybill then derives one from the
     *  incoming id and the ordinal of this send, which is the same on every
     *  attempt. With wb_send(), that of the message being handled: it is that message, sent on.
     *  Then Waybill adds no more headers than its id, its type and `content_type`, and says
     *  nothing of who sent it and when, to whom one replies and what it belongs to: what `headers`
     *  says of that stands. */
    const char *id;
    size_t id_size;
    /** A text; NULL: "application/json", and none for a message that is sent on. */
    const char *content_type;
    /** Decides order and partition where a transport has them; optional. Without it the
     *  value of a header "Waybill.Key" does, if there is one that is not empty. */
    const char *key;
    size_t key_size;
    /** WB_IMMEDIATE, WB_NON_PERSISTENT, or 0; another bit is refused. */
    uint32_t flags;
    uint32_t reserved; /* 0 */
    /** In a batch handler with more than one message: the message that causes
     *  this one. Required there (ids and failures belong to single messages),
     *  NULL elsewhere. */
    const wb_message *cause;
    /** Deliver it so many nanoseconds from now (`.delay = 10 * WB_SECONDS`), or not before
     *  `deliver_at`, nanoseconds since 1970 UTC; at most one of the two. 0: at once. The time it
     *  is due is fixed by the call, and a time that has come is no delay. What delays, the
     *  broker or the delayed message store, is the endpoint's configuration; where nobody can,
     *  the call is refused; an event can be delayed by the store only. At most 3650 days. With WB_IMMEDIATE only where the broker delays. */
    int64_t delay;
    int64_t deliver_at;
    /** If nobody has received it so many nanoseconds after it was sent (`30 * WB_SECONDS`), nobody
     *  will: it is dropped. 0: it waits for ever. At most 49 days; not together with a delay;
     *  refused where the transport cannot. Once it was received it expires no more, nor does what
     *  becomes of it: retries, the error queue's copy. A header "NServiceBus.TimeToBeReceived" of
     *  your own says the same. */
    int64_t time_to_be_received;
} wb_outgoing;

/* Units of wb_outgoing.delay and time_to_be_received. */
#define WB_MILLISECONDS INT64_C(1000000)
#define WB_SECONDS INT64_C(1000000000)
#define WB_MINUTES (60 * WB_SECONDS)
#define WB_HOURS (60 * WB_MINUTES)
#define WB_DAYS (24 * WB_HOURS)

#ifdef __cplusplus
}
#endif
#endif

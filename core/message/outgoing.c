/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/outgoing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/sha256.h"
#include "core/message/expiry.h"
#include "core/message/given.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/message/text.h"

/* The headers Waybill sets itself, at most. */
#define OWN_HEADERS_MAX 19

typedef struct {
    wb_header *headers;
    size_t count;
    wb_arena *arena;
} header_list;

static const char *machine_name(void)
{
    static char machine[256];
    if (!machine[0] && gethostname(machine, sizeof machine - 1) != 0)
        strcpy(machine, "localhost");
    return machine;
}

static const char *host_id(void)
{
    static char id[33]; /* the same for each start on a machine */
    if (!id[0]) {
        unsigned char digest[WB_SHA256_SIZE];
        wb_sha256 hash;
        wb_sha256_init(&hash);
        wb_sha256_update(&hash, machine_name(), strlen(machine_name()));
        wb_sha256_final(&hash, digest);
        for (size_t i = 0; i < 16; i++)
            (void)snprintf(id + 2 * i, 3, "%02x", digest[i]);
    }
    return id;
}

wb_origin wb_origin_make(const char *endpoint, int receives, int64_t body_max)
{
    wb_text name = { endpoint, strlen(endpoint) }, none = { NULL, 0 };
    return (wb_origin){ .endpoint = name,
                        .reply_to = receives ? name : none,
                        .machine = { machine_name(), strlen(machine_name()) },
                        .host_id = { host_id(), strlen(host_id()) },
                        .body_max = body_max };
}

static size_t text_size(const char *text)
{
    return text ? strlen(text) : 0;
}

static int reject(wb_error *error, int cause, const char *what)
{
    return wb_error_set(error, WB_REJECT, cause, 0, "%s", what);
}

/* ---- what is handed over ------------------------------------------------------------------ */

/* What somebody asks for must not be passed over because it is not known here. */
static int check_known(int kind, const wb_outgoing *outgoing, int is_beyond, wb_error *error)
{
    const uint32_t unknown = outgoing->flags & ~(uint32_t)(WB_IMMEDIATE | WB_NON_PERSISTENT);
    if (kind != WB_KIND_SEND && kind != WB_KIND_PUBLISH && kind != WB_KIND_REPLY)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0,
                            "an outgoing operation is of kind %d, which this version does not know", kind);
    if (is_beyond)
        return reject(error, WB_CAUSE_OTHER, "an outgoing message asks for what this version does not know: who "
                                             "sends it was built for a later one");
    if (unknown)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0,
                            "an outgoing message has flags 0x%x that this version does not know: there are WB_IMMEDIATE "
                            "and WB_NON_PERSISTENT", (unsigned)unknown);
    if (outgoing->reserved)
        return reject(error, WB_CAUSE_OTHER, "an outgoing message's field reserved is not 0: zero what you do not set");
    return WB_OK;
}

/* The struct of 1.0 is the shortest there is. */
int wb_outgoing_check_size(size_t size, wb_error *error)
{
    const size_t least = offsetof(wb_outgoing, time_to_be_received) + sizeof(int64_t);
    return size >= least ? WB_OK
                         : wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0,
                                        "an outgoing message has %zu bytes, fewer than any version's: pass sizeof(wb_outgoing)",
                                        size);
}

static int take_header(wb_header *header, wb_error *error)
{
    if (wb_given_name("an outgoing header's name", header->name, &header->name_size, error) != WB_OK ||
        wb_given_bytes("an outgoing header's value", header->value, &header->value_size, error) != WB_OK)
        return WB_REJECT;
    return header->name && header->value ? WB_OK : reject(error, WB_CAUSE_OTHER, "an outgoing header has no name or no value");
}

/* The caller's are not touched. */
static int take_headers(wb_outgoing *outgoing, wb_arena *arena, wb_error *error)
{
    const size_t count = outgoing->header_count;
    if (count > WB_OUTGOING_HEADERS_MAX)
        return reject(error, WB_CAUSE_TOO_LARGE, "an outgoing message has more than 256 headers");
    if (count && !outgoing->headers)
        return reject(error, WB_CAUSE_OTHER, "an outgoing message has a number of headers, and they are NULL");
    if (!count)
        return WB_OK;
    wb_header *headers = wb_arena_alloc(arena, count * sizeof *headers);
    for (size_t i = 0; i < count; i++) {
        headers[i] = outgoing->headers[i];
        if (take_header(&headers[i], error) != WB_OK)
            return WB_REJECT;
    }
    outgoing->headers = headers;
    return WB_OK;
}

/* With sizes as they are: nothing below has to look for the end of a text. A module built against a
 * later header may hand over more than we know; one built against an earlier header, less. */
static int take(int kind, const wb_outgoing *outgoing, size_t size, wb_arena *arena, wb_outgoing *ret_known,
                wb_error *error)
{
    if (wb_outgoing_check_size(size, error) != WB_OK)
        return WB_REJECT;
    memset(ret_known, 0, sizeof *ret_known);
    memcpy(ret_known, outgoing, size < sizeof *ret_known ? size : sizeof *ret_known);
    if (check_known(kind, ret_known, wb_given_is_beyond(outgoing, size, sizeof *outgoing), error) != WB_OK ||
        wb_given_bytes("an outgoing message's body", ret_known->body, &ret_known->body_size, error) != WB_OK ||
        wb_given_name("an outgoing message's id", ret_known->id, &ret_known->id_size, error) != WB_OK ||
        wb_given_name("an outgoing message's key", ret_known->key, &ret_known->key_size, error) != WB_OK)
        return WB_REJECT;
    return take_headers(ret_known, arena, error);
}

/* ---- checks ------------------------------------------------------------------------------- */

static int check_headers(const wb_outgoing *outgoing, wb_error *error)
{
    size_t bytes = 0;
    for (size_t i = 0; i < outgoing->header_count; i++) {
        const wb_header *header = &outgoing->headers[i];
        if (header->name_size > WB_OUTGOING_NAME_MAX)
            return reject(error, WB_CAUSE_TOO_LARGE, "an outgoing header's name is longer than 255 bytes");
        if (header->value_size > WB_OUTGOING_VALUE_MAX)
            return reject(error, WB_CAUSE_TOO_LARGE, "an outgoing header's value is larger than 32 KiB");
        bytes += header->name_size + header->value_size;
    }
    if (bytes > WB_OUTGOING_HEADERS_SIZE_MAX)
        return reject(error, WB_CAUSE_TOO_LARGE, "an outgoing message's headers are larger than 60 KiB");
    return WB_OK;
}

/* Names become arguments of a protocol: a broker may close the connection over one that is
 * no text, and every message in hand with it. */
static int check_name(const char *name, size_t size, const char *what, wb_error *error)
{
    if (size == 0)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "an outgoing message has no %s", what);
    if (size > WB_OUTGOING_NAME_MAX)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_TOO_LARGE, 0,
                            "an outgoing message's %s is longer than 255 bytes", what);
    if (!wb_text_is_plain(name, size))
        return wb_error_set(error, WB_REJECT, WB_CAUSE_UNROUTABLE, 0,
                            "an outgoing message's %s is no text: it holds control characters or is not UTF-8",
                            what);
    return WB_OK;
}

static int check_outgoing(const wb_origin *origin, int kind, const wb_outgoing *outgoing,
                          wb_error *error)
{
    if (check_name(outgoing->type, text_size(outgoing->type), "type", error) != WB_OK)
        return WB_REJECT;
    if (kind == WB_KIND_PUBLISH && origin->cannot_publish)
        return reject(error, WB_CAUSE_OTHER, "the transport cannot publish: send a command to each endpoint instead");
    if (kind == WB_KIND_PUBLISH && outgoing->destination)
        return reject(error, WB_CAUSE_OTHER, "an event has no destination: use send for a command");
    if (outgoing->body_size > (uint64_t)origin->body_max)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_TOO_LARGE, 0,
                            "an outgoing body of %zu bytes is over body_max = %lld",
                            outgoing->body_size, (long long)origin->body_max);
    if (outgoing->id_size > WB_ID_MAX)
        return reject(error, WB_CAUSE_TOO_LARGE, "an outgoing message id is longer than 255 bytes");
    return check_headers(outgoing, error) == WB_OK ? wb_expiry_check(outgoing, origin->expires, error) : WB_REJECT;
}

static int check_delay(const wb_origin *origin, int kind, const wb_outgoing *outgoing, wb_error *error)
{
    if (!outgoing->delay && !outgoing->deliver_at)
        return WB_OK;
    if (outgoing->delay && outgoing->deliver_at)
        return reject(error, WB_CAUSE_OTHER, "an outgoing message has both a delay and a time it is due");
    if (outgoing->delay < 0 || outgoing->deliver_at < 0)
        return reject(error, WB_CAUSE_OTHER, "an outgoing message's delay is negative");
    if (origin->delays == WB_DELAYS_BY_NOBODY)
        return reject(error, WB_CAUSE_OTHER,
                      "nobody delays messages here: neither the transport can, nor is there a persistence that "
                      "stores delayed messages in this transaction mode");
    if (kind == WB_KIND_PUBLISH && origin->delays == WB_DELAYS_BY_TRANSPORT)
        return reject(error, WB_CAUSE_OTHER, "an event cannot be delayed by the transport: send a command to an endpoint "
                                             "that publishes it, or set delayed_delivery by = \"store\"");
    if ((outgoing->flags & WB_IMMEDIATE) && origin->delays == WB_DELAYS_BY_STORE)
        return reject(error, WB_CAUSE_OTHER, "an immediate message cannot be delayed: the store that keeps "
                                             "delayed messages is in the database of the transaction");
    return WB_OK;
}

/* The time is fixed now, whenever the message leaves. */
static int fix_due(const wb_origin *origin, int kind, const wb_outgoing *outgoing, int64_t *ret_due, wb_error *error)
{
    *ret_due = outgoing->deliver_at;
    if (check_delay(origin, kind, outgoing, error) != WB_OK)
        return WB_REJECT;
    if (!outgoing->delay && !outgoing->deliver_at)
        return WB_OK;
    int64_t now = wb_origin_now(origin);
    if (outgoing->delay > WB_OUTGOING_DELAY_MAX || outgoing->deliver_at > now + WB_OUTGOING_DELAY_MAX)
        return reject(error, WB_CAUSE_TOO_LARGE, "an outgoing message is delayed by more than 3650 days");
    if (outgoing->delay)
        *ret_due = now + outgoing->delay;
    return WB_OK;
}

/* ---- making it ---------------------------------------------------------------------------- */

static int is_set_by_user(const wb_outgoing *outgoing, const char *name, size_t size)
{
    for (size_t i = 0; i < outgoing->header_count; i++) {
        const wb_header *header = &outgoing->headers[i];
        if (header->name_size == size && memcmp(header->name, name, size) == 0)
            return 1;
    }
    return 0;
}

/* Name and value live as long as the operation. What the user sets wins. */
static void add_header(header_list *list, const wb_outgoing *outgoing, const char *name,
                       size_t name_size, const char *value, size_t value_size)
{
    if (!value || (outgoing->header_count && is_set_by_user(outgoing, name, name_size)))
        return;
    list->headers[list->count++] = (wb_header){ name, value, name_size, value_size };
}

#define ADD(list, outgoing, name, value, value_size)                                               \
    add_header((list), (outgoing), "" name, sizeof(name) - 1, (value), (value_size))
#define ADD_TEXT(list, outgoing, name, text)                                                       \
    ADD((list), (outgoing), name, (text).value, (text).size)
#define ADD_COPY(list, outgoing, name, value, value_size)                                          \
    ADD((list), (outgoing), name, wb_arena_copy((list)->arena, (value), (value_size)), (value_size))
#define CAUSE_HEADER(cause, name)                                                                  \
    ((cause) ? WB_HEADERS_FIND((cause)->headers, (cause)->header_count, name) : NULL)

/* What relates a message to the one that caused it: the headers of the flow diagram. Their
 * values stay where they are: the operation does not outlive its cause. */
static void add_relations(header_list *list, const wb_outgoing *outgoing, const wb_operation *operation,
                          const wb_message *cause)
{
    const wb_header *conversation = CAUSE_HEADER(cause, WB_HEADER_CONVERSATION_ID);
    const wb_header *correlation = CAUSE_HEADER(cause, WB_HEADER_CORRELATION_ID);

    if (conversation)
        ADD(list, outgoing, WB_HEADER_CONVERSATION_ID, conversation->value, conversation->value_size);
    else
        ADD(list, outgoing, WB_HEADER_CONVERSATION_ID, operation->id, operation->id_size);
    if (correlation)
        ADD(list, outgoing, WB_HEADER_CORRELATION_ID, correlation->value, correlation->value_size);
    else if (cause)
        ADD(list, outgoing, WB_HEADER_CORRELATION_ID, cause->id, cause->id_size);
    else
        ADD(list, outgoing, WB_HEADER_CORRELATION_ID, operation->id, operation->id_size);
    if (cause)
        ADD(list, outgoing, WB_HEADER_RELATED_TO, cause->id, cause->id_size);
}

/* A saga that asked for something finds its data by what comes back. */
static void add_saga(header_list *list, const wb_outgoing *outgoing, const wb_message *cause)
{
    const wb_header *id = CAUSE_HEADER(cause, WB_HEADER_ORIGINATING_SAGA_ID);
    const wb_header *type = CAUSE_HEADER(cause, WB_HEADER_ORIGINATING_SAGA_TYPE);
    if (id)
        ADD(list, outgoing, WB_HEADER_SAGA_ID, id->value, id->value_size);
    if (type)
        ADD(list, outgoing, WB_HEADER_SAGA_TYPE, type->value, type->value_size);
}

static size_t size_of_user_headers(const wb_outgoing *outgoing)
{
    size_t size = 0;
    for (size_t i = 0; i < outgoing->header_count; i++)
        size += outgoing->headers[i].name_size + outgoing->headers[i].value_size;
    return size;
}

/* Its own sending is a step of the trace. @return whether the cause names that trace: what else it says of it is true, too. */
static int add_step(header_list *list, const wb_origin *origin, const wb_outgoing *outgoing, const wb_operation *operation,
                    const wb_message *cause)
{
    char text[WB_TRACE_PARENT_SIZE];
    wb_trace trace;
    const int is_related = cause && !WB_HEADERS_FIND(outgoing->headers, outgoing->header_count, WB_HEADER_RELATED_TO);
    const int is_named = wb_trace_send(origin->tracing, &origin->endpoint, operation, cause, is_related, &trace);
    wb_trace_write(&trace, text);
    ADD_COPY(list, outgoing, WB_HEADER_TRACE_PARENT, text, sizeof text - 1);
    return is_named;
}

/* The trace goes on in what a handler sends. A peer wrote it, so it may be large: what would
 * make the message one that no receiver takes is left out. */
static void add_trace(header_list *list, const wb_origin *origin, const wb_outgoing *outgoing, const wb_operation *operation,
                      const wb_message *cause)
{
    static const wb_text names[] = { { WB_HEADER_TRACE_PARENT, sizeof WB_HEADER_TRACE_PARENT - 1 },
                                     { WB_HEADER_TRACE_STATE, sizeof WB_HEADER_TRACE_STATE - 1 },
                                     { WB_HEADER_BAGGAGE, sizeof WB_HEADER_BAGGAGE - 1 } };
    size_t room = WB_OUTGOING_HEADERS_SIZE_MAX - size_of_user_headers(outgoing), first = 0;
    if (origin->tracing && room >= names[0].size + WB_TRACE_PARENT_SIZE - 1) {
        room -= names[0].size + WB_TRACE_PARENT_SIZE - 1;
        first = add_step(list, origin, outgoing, operation, cause) ? 1 : 2; /* the state is that trace's, and baggage nobody's */
    }
    for (size_t i = first; cause && i < sizeof names / sizeof names[0]; i++) {
        const wb_header *found =
            wb_headers_find(cause->headers, cause->header_count, names[i].value, names[i].size);
        if (!found || found->value_size > WB_OUTGOING_VALUE_MAX || names[i].size + found->value_size > room)
            continue;
        room -= names[i].size + found->value_size;
        add_header(list, outgoing, names[i].value, names[i].size, found->value, found->value_size);
    }
}

static void add_user_headers(header_list *list, const wb_outgoing *outgoing)
{
    for (size_t i = 0; i < outgoing->header_count; i++) {
        const wb_header *from = &outgoing->headers[i];
        wb_header *to = &list->headers[list->count++];
        *to = (wb_header){ .name = wb_arena_copy(list->arena, from->name, from->name_size),
                           .value = wb_arena_copy(list->arena, from->value, from->value_size),
                           .name_size = from->name_size,
                           .value_size = from->value_size };
    }
}

/* The message in hand itself, under its id: whoever sends it on did not make it. */
static int is_sent_on(int kind, const wb_outgoing *outgoing, const wb_message *cause)
{
    return kind == WB_KIND_SEND && cause && outgoing->id_size == cause->id_size &&
           memcmp(outgoing->id, cause->id, cause->id_size) == 0;
}

/* Who made it, and what it belongs to. */
static void add_origin(header_list *list, const wb_origin *origin, int kind, const wb_outgoing *outgoing,
                       const wb_message *cause, const wb_operation *operation)
{
    static const wb_text intents[] = { { "", 0 }, { "Send", 4 }, { "Publish", 7 }, { "Reply", 5 } };
    ADD_TEXT(list, outgoing, WB_HEADER_INTENT, intents[kind]);
    add_relations(list, outgoing, operation, cause);
    if (kind == WB_KIND_REPLY)
        add_saga(list, outgoing, cause);
    add_trace(list, origin, outgoing, operation, cause);
    ADD_TEXT(list, outgoing, WB_HEADER_REPLY_TO, origin->reply_to);
    ADD_TEXT(list, outgoing, WB_HEADER_ORIGINATING_ENDPOINT, origin->endpoint);
    ADD_TEXT(list, outgoing, WB_HEADER_ORIGINATING_MACHINE, origin->machine);
    ADD_TEXT(list, outgoing, WB_HEADER_ORIGINATING_HOST_ID, origin->host_id);
}

static void add_headers(const wb_origin *origin, int kind, const wb_outgoing *outgoing,
                        const wb_message *cause, wb_arena *arena, wb_operation *operation)
{
    header_list list = { wb_arena_alloc(arena, (OWN_HEADERS_MAX + outgoing->header_count) *
                                                   sizeof(wb_header)),
                         0, arena };
    char time[WB_TIMESTAMP_SIZE];
    const int sent_on = is_sent_on(kind, outgoing, cause);
    const wb_type_bases *bases = wb_type_bases_find(origin->bases, origin->base_count, outgoing->type);
    const char *types = bases ? bases->list : outgoing->type;
    const char *content_type = outgoing->content_type || sent_on ? outgoing->content_type : "application/json";

    ADD(&list, outgoing, WB_HEADER_MESSAGE_ID, operation->id, operation->id_size);
    if (!sent_on)
        add_origin(&list, origin, kind, outgoing, cause, operation);
    if (content_type)
        ADD_COPY(&list, outgoing, WB_HEADER_CONTENT_TYPE, content_type, strlen(content_type));
    ADD_COPY(&list, outgoing, WB_HEADER_TYPES, types, strlen(types));
    if (!sent_on) {
        wb_clock_format_wire(wb_clock_wall(), time);
        ADD_COPY(&list, outgoing, WB_HEADER_TIME_SENT, time, strlen(time));
    }
    if (operation->deliver_at) {
        wb_clock_format_wire(operation->deliver_at, time);
        ADD_COPY(&list, outgoing, WB_HEADER_DELIVER_AT, time, strlen(time));
    }
    if (outgoing->time_to_be_received && !wb_bug("span_lost")) {
        char span[WB_SPAN_SIZE];
        wb_clock_format_span(outgoing->time_to_be_received, span);
        ADD_COPY(&list, outgoing, WB_HEADER_TIME_TO_BE_RECEIVED, span, strlen(span));
    }
    add_user_headers(&list, outgoing);
    operation->headers = list.headers;
    operation->header_count = list.count;
}

static void derive_id(const wb_origin *origin, int kind, const wb_outgoing *outgoing,
                      const wb_message *cause, uint32_t ordinal, const char *destination,
                      char id[WB_GENERATED_ID_SIZE])
{
    wb_id_seed seed = { origin->endpoint.value, kind, (outgoing->flags & WB_IMMEDIATE) != 0,
                        outgoing->type, destination, ordinal, cause->id, cause->id_size };
    if (wb_bug("immediate_id")) {
        seed.kind = seed.immediate = 0;
        seed.type = seed.destination = "";
    }
    wb_id_derive(&seed, id);
}

static void set_id(const wb_origin *origin, int kind, const wb_outgoing *outgoing, const wb_message *cause,
                   uint32_t ordinal, wb_arena *arena, wb_operation *operation)
{
    char id[WB_GENERATED_ID_SIZE];
    if (outgoing->id) {
        operation->id = wb_arena_copy(arena, outgoing->id, outgoing->id_size);
        operation->id_size = outgoing->id_size;
        return;
    }
    if (cause)
        derive_id(origin, kind, outgoing, cause, ordinal, operation->destination, id);
    else
        wb_id_generate(id);
    operation->id = wb_arena_copy(arena, id, sizeof id - 1);
    operation->id_size = sizeof id - 1;
}

/* A body that lies in the cause's body stays valid until that message is acknowledged, and
 * then the operation is long dispatched: forwarding needs no copy. */
static int is_part_of(const void *body, size_t size, const wb_message *cause)
{
    uintptr_t start = (uintptr_t)body, from = cause ? (uintptr_t)cause->body : 0;
    return cause && size && start >= from && size <= cause->body_size &&
           start - from <= cause->body_size - size;
}

/* An event goes to its type, whatever assemblies its name was given with. */
static const char *event_name(const wb_outgoing *outgoing, char name[WB_TYPE_SIZE])
{
    const char *position = outgoing->type;
    size_t size;
    return wb_type_next(&position, name, &size) ? name : "";
}

/* Where it goes, checked; a reply goes where a peer says.
 * @return NULL with the error set when it can go nowhere. */
static const char *destination_of(int kind, const wb_outgoing *outgoing, const wb_message *cause,
                                  wb_arena *arena, wb_error *error)
{
    const wb_header *reply_to = CAUSE_HEADER(cause, WB_HEADER_REPLY_TO);
    char event[WB_TYPE_SIZE];
    const char *name = kind == WB_KIND_PUBLISH ? event_name(outgoing, event) : outgoing->destination;
    size_t size = text_size(name);
    if (kind == WB_KIND_REPLY) {
        if (!reply_to || !reply_to->value_size) {
            (void)reject(error, WB_CAUSE_OTHER, "cannot reply: the message has no reply address");
            return NULL;
        }
        name = reply_to->value;
        size = reply_to->value_size;
    }
    const char *what = kind == WB_KIND_REPLY ? "reply address" : kind == WB_KIND_SEND ? "destination" : "type";
    return check_name(name, size, what, error) == WB_OK ? wb_arena_copy(arena, name, size) : NULL;
}

static void set_key(const wb_outgoing *outgoing, wb_arena *arena, wb_operation *operation)
{
    const wb_header *header = outgoing->key ? NULL
                                            : WB_HEADERS_FIND(operation->headers, operation->header_count,
                                                              WB_HEADER_KEY);
    if (header && header->value_size) {
        operation->key = header->value;
        operation->key_size = header->value_size;
    } else if (outgoing->key) {
        operation->key = wb_arena_copy(arena, outgoing->key, outgoing->key_size);
        operation->key_size = outgoing->key_size;
    }
}

int wb_outgoing_add(const wb_origin *origin, int kind, const wb_outgoing *outgoing, size_t size,
                    const wb_message *cause, uint32_t ordinal, wb_arena *arena,
                    wb_operation_list *list, wb_error *error)
{
    wb_outgoing known;
    if (take(kind, outgoing, size, arena, &known, error) != WB_OK || check_outgoing(origin, kind, &known, error) != WB_OK)
        return WB_REJECT;
    if (list->count >= WB_OUTGOING_PER_MESSAGE_MAX)
        return reject(error, WB_CAUSE_TOO_LARGE, "a message may cause at most 10000 outgoing messages");
    int64_t due;
    const char *destination = destination_of(kind, &known, cause, arena, error);
    if (!destination || fix_due(origin, kind, &known, &due, error) != WB_OK)
        return WB_REJECT;

    wb_operation *operation = wb_operation_append(list, arena);
    operation->kind = kind == WB_KIND_PUBLISH ? WB_OPERATION_PUBLISH : WB_OPERATION_SEND;
    operation->flags = (kind == WB_KIND_PUBLISH ? 0 : WB_OPERATION_MANDATORY) |
                       (known.flags & WB_NON_PERSISTENT ? WB_OPERATION_NON_PERSISTENT : 0);
    operation->destination = destination;
    operation->deliver_at = due;
    set_id(origin, kind, &known, cause, ordinal, arena, operation);
    add_headers(origin, kind, &known, cause, arena, operation);
    operation->body = is_part_of(known.body, known.body_size, cause)
                          ? known.body
                          : wb_arena_copy(arena, known.body, known.body_size);
    operation->body_size = known.body_size;
    set_key(&known, arena, operation);
    return WB_OK;
}

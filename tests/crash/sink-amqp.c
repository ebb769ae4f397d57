/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle's eyes on RabbitMQ:
 *
 *   sink-amqp drain QUEUE ...   take everything out and print it
 *   sink-amqp peek QUEUE ...    print everything; it stays in the queue
 *   sink-amqp depth QUEUE ...   print "queue <TAB> ready <TAB> consumers"
 *   sink-amqp declare QUEUE ... make quorum queues
 *   sink-amqp lead-nowhere NAME ...  make exchanges to which no queue is bound
 *   sink-amqp lead-to-sink NAME ...  bind the queue "sink" to them
 *
 * A message is printed as "queue <TAB> id <TAB> digest <TAB> body <TAB> reason": the digest is
 * over its id, properties, headers in their order, and body; the reason is the header
 * NServiceBus.ExceptionInfo.Message of failed messages. Control characters are printed
 * as spaces. peek counts as one delivery of each message.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/crash/broker.h"
#include "tests/crash/digest.h"

static uint64_t digest_bytes(uint64_t digest, amqp_bytes_t bytes)
{
    return digest_add(digest, bytes.bytes, bytes.len);
}

static int is_named(const amqp_table_entry_t *header, const char *name)
{
    return header->key.len == strlen(name) && memcmp(header->key.bytes, name, header->key.len) == 0;
}

static int is_text(const amqp_table_entry_t *header)
{
    return header->value.kind == AMQP_FIELD_KIND_UTF8 ||
           header->value.kind == AMQP_FIELD_KIND_BYTES;
}

static uint64_t digest_headers(uint64_t digest, const amqp_table_t *headers)
{
    for (int i = 0; i < headers->num_entries; i++) {
        const amqp_table_entry_t *header = &headers->entries[i];
        if (is_named(header, "x-delivery-count")) /* the broker's, not the sender's */
            continue;
        digest = digest_bytes(digest, header->key);
        digest = digest_add(digest, &header->value.kind, sizeof header->value.kind);
        if (is_text(header))
            digest = digest_bytes(digest, header->value.value.bytes);
        else if (header->value.kind == AMQP_FIELD_KIND_I32)
            digest = digest_add(digest, &header->value.value.i32, sizeof header->value.value.i32);
        else if (header->value.kind == AMQP_FIELD_KIND_I64)
            digest = digest_add(digest, &header->value.value.i64, sizeof header->value.value.i64);
    }
    return digest;
}

static uint64_t digest_message(const amqp_message_t *message)
{
    const amqp_basic_properties_t *p = &message->properties;
    const amqp_flags_t flags = p->_flags;
    uint64_t digest = digest_add(DIGEST_START, &flags, sizeof flags);
    const struct {
        amqp_flags_t flag;
        amqp_bytes_t value;
    } texts[] = {
        { AMQP_BASIC_MESSAGE_ID_FLAG, p->message_id },
        { AMQP_BASIC_TYPE_FLAG, p->type },
        { AMQP_BASIC_CORRELATION_ID_FLAG, p->correlation_id },
        { AMQP_BASIC_REPLY_TO_FLAG, p->reply_to },
        { AMQP_BASIC_CONTENT_TYPE_FLAG, p->content_type },
        { AMQP_BASIC_EXPIRATION_FLAG, p->expiration },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (flags & texts[i].flag)
            digest = digest_bytes(digest, texts[i].value);
    if (flags & AMQP_BASIC_DELIVERY_MODE_FLAG)
        digest = digest_add(digest, &p->delivery_mode, sizeof p->delivery_mode);
    if (flags & AMQP_BASIC_HEADERS_FLAG)
        digest = digest_headers(digest, &p->headers);
    return digest_bytes(digest, message->body);
}

static void print_text(amqp_bytes_t text)
{
    const unsigned char *bytes = text.bytes;
    for (size_t i = 0; i < text.len; i++)
        putchar(bytes[i] < ' ' ? ' ' : bytes[i]);
}

static void print_message(const char *queue, const amqp_message_t *message)
{
    const amqp_basic_properties_t *p = &message->properties;
    printf("%s\t", queue);
    if (p->_flags & AMQP_BASIC_MESSAGE_ID_FLAG)
        print_text(p->message_id);
    printf("\t%016" PRIx64 "\t", digest_message(message));
    print_text(message->body);
    putchar('\t');
    for (int i = 0; p->_flags & AMQP_BASIC_HEADERS_FLAG && i < p->headers.num_entries; i++)
        if (is_named(&p->headers.entries[i], "NServiceBus.ExceptionInfo.Message") &&
            is_text(&p->headers.entries[i]))
            print_text(p->headers.entries[i].value.value.bytes);
    putchar('\n');
}

/* @return 1 a message, 0 the queue is empty, -1 an error */
static int get_one(amqp_connection_state_t broker, const char *queue, int keep)
{
    amqp_message_t message;
    amqp_rpc_reply_t reply =
        amqp_basic_get(broker, BROKER_CHANNEL, amqp_cstring_bytes(queue), !keep);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) {
        fprintf(stderr, "cannot read queue \"%s\"\n", queue);
        return -1;
    }
    if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD)
        return 0;
    reply = amqp_read_message(broker, BROKER_CHANNEL, &message, 0);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        return -1;
    print_message(queue, &message);
    amqp_destroy_message(&message);
    amqp_maybe_release_buffers(broker);
    return 1;
}

static int print_all(amqp_connection_state_t broker, const char *queue, int keep)
{
    int got;
    while ((got = get_one(broker, queue, keep)) > 0)
        ;
    return got;
}

static int declare(amqp_connection_state_t broker, const char *queue)
{
    amqp_table_entry_t type = { .key = amqp_cstring_bytes("x-queue-type") };
    type.value.kind = AMQP_FIELD_KIND_UTF8;
    type.value.value.bytes = amqp_cstring_bytes("quorum");
    amqp_queue_declare(broker, BROKER_CHANNEL, amqp_cstring_bytes(queue), 0, 1, 0, 0,
                       (amqp_table_t){ 1, &type });
    return broker_ok(broker, "queue.declare") ? 0 : -1;
}

static int lead_nowhere(amqp_connection_state_t broker, const char *exchange)
{
    amqp_exchange_declare(broker, BROKER_CHANNEL, amqp_cstring_bytes(exchange),
                          amqp_cstring_bytes("fanout"), 0, 1, 0, 0, amqp_empty_table);
    return broker_ok(broker, "exchange.declare") ? 0 : -1;
}

static int lead_to_sink(amqp_connection_state_t broker, const char *exchange)
{
    amqp_queue_bind(broker, BROKER_CHANNEL, amqp_cstring_bytes("sink"),
                    amqp_cstring_bytes(exchange), amqp_empty_bytes, amqp_empty_table);
    return broker_ok(broker, "queue.bind") ? 0 : -1;
}

static int drain(amqp_connection_state_t broker, const char *queue)
{
    return print_all(broker, queue, 0);
}

static int peek(amqp_connection_state_t broker, const char *queue)
{
    return print_all(broker, queue, 1);
}

static int depth(amqp_connection_state_t broker, const char *queue)
{
    const amqp_queue_declare_ok_t *ok = amqp_queue_declare(broker, BROKER_CHANNEL,
                                                           amqp_cstring_bytes(queue), 1, 0, 0, 0,
                                                           amqp_empty_table);
    if (!ok)
        return broker_ok(broker, "queue.declare") ? 0 : -1;
    printf("%s\t%u\t%u\n", queue, ok->message_count, ok->consumer_count);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(amqp_connection_state_t broker, const char *queue);
    } verbs[] = {
        { "drain", drain },     { "peek", peek },
        { "depth", depth },     { "declare", declare },
        { "lead-nowhere", lead_nowhere }, { "lead-to-sink", lead_to_sink },
    };
    size_t verb = 0, count = sizeof verbs / sizeof verbs[0];

    while (verb < count && (argc < 3 || strcmp(argv[1], verbs[verb].name) != 0))
        verb++;
    if (verb == count) {
        fprintf(stderr, "usage: sink-amqp drain|peek|depth|declare|lead-nowhere|lead-to-sink NAME ...\n");
        return 64;
    }
    int r = 0;
    amqp_connection_state_t broker = broker_open_within(30);
    for (int i = 2; i < argc && r == 0; i++)
        r = verbs[verb].run(broker, argv[i]);
    broker_close(broker);
    return r == 0 ? 0 : 1;
}

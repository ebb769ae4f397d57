/* SPDX-License-Identifier: Apache-2.0
 *
 * inject-amqp QUEUE: put the messages on stdin into a queue, with confirms.
 *
 * A line is "id <TAB> type <TAB> body". Exit code 0 says that the broker confirmed each
 * of them. When the connection breaks, what is not confirmed is sent again, so that a
 * message may be there twice; never less than once.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/crash/broker.h"

#define WINDOW 200
#define LINE_MAX_SIZE 70000
#define PATIENCE 60 /* seconds without broker */

typedef struct line {
    char *text; /* NULL: confirmed */
    char *type;
    char *body;
} line;

static line window[WINDOW];
static size_t window_count;

static size_t fill_window(void)
{
    static char buffer[LINE_MAX_SIZE];
    window_count = 0;
    while (window_count < WINDOW && fgets(buffer, sizeof buffer, stdin)) {
        line *next = &window[window_count++];
        buffer[strcspn(buffer, "\n")] = '\0';
        next->text = strdup(buffer);
        next->type = next->text ? strchr(next->text, '\t') : NULL;
        next->body = next->type ? strchr(next->type + 1, '\t') : NULL;
        if (!next->body) {
            fprintf(stderr, "not a message: %s\n", buffer);
            exit(1);
        }
        *next->type++ = '\0';
        *next->body++ = '\0';
    }
    return window_count;
}

static void confirm(size_t index)
{
    free(window[index].text);
    window[index].text = NULL;
}

static int publish(amqp_connection_state_t broker, const char *queue, const line *message)
{
    amqp_table_entry_t type = { .key = amqp_cstring_bytes("NServiceBus.EnclosedMessageTypes") };
    type.value.kind = AMQP_FIELD_KIND_UTF8;
    type.value.value.bytes = amqp_cstring_bytes(message->type);
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TYPE_FLAG |
                  AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG |
                  AMQP_BASIC_HEADERS_FLAG,
        .message_id = amqp_cstring_bytes(message->text),
        .type = amqp_cstring_bytes(message->type),
        .content_type = amqp_cstring_bytes("text/plain"),
        .delivery_mode = 2,
        .headers = { 1, &type },
    };
    return amqp_basic_publish(broker, BROKER_CHANNEL, amqp_empty_bytes, amqp_cstring_bytes(queue),
                              1, 0, &properties,
                              amqp_cstring_bytes(message->body)) == AMQP_STATUS_OK;
}

/* `sent` maps the channel's sequence numbers, from 1, to the window. */
static int apply_ack(const amqp_basic_ack_t *ack, const size_t *sent, size_t count)
{
    if (ack->delivery_tag < 1 || ack->delivery_tag > count)
        return 0;
    for (uint64_t tag = ack->multiple ? 1 : ack->delivery_tag; tag <= ack->delivery_tag; tag++)
        confirm(sent[tag - 1]);
    return 1;
}

static int is_confirmed(const size_t *sent, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (window[sent[i]].text)
            return 0;
    return 1;
}

static int await_confirms(amqp_connection_state_t broker, const size_t *sent, size_t count)
{
    while (!is_confirmed(sent, count)) {
        amqp_frame_t frame;
        int r = amqp_simple_wait_frame_noblock(broker, &frame, &(struct timeval){ 30, 0 });
        if (r != AMQP_STATUS_OK)
            return 0;
        if (frame.frame_type != AMQP_FRAME_METHOD)
            continue;
        if (frame.payload.method.id == AMQP_BASIC_RETURN_METHOD) {
            fprintf(stderr, "no such queue\n");
            exit(1);
        }
        if (frame.payload.method.id != AMQP_BASIC_ACK_METHOD ||
            !apply_ack(frame.payload.method.decoded, sent, count))
            return 0;
        amqp_maybe_release_buffers(broker);
    }
    return 1;
}

/* Send what is not confirmed on a fresh channel, where sequence numbers start at 1. */
static int send_window(amqp_connection_state_t broker, const char *queue)
{
    size_t sent[WINDOW], count = 0;
    amqp_confirm_select(broker, BROKER_CHANNEL);
    if (!broker_ok(broker, "confirm.select"))
        return 0;
    for (size_t i = 0; i < window_count; i++) {
        if (!window[i].text)
            continue;
        if (!publish(broker, queue, &window[i]))
            return 0;
        sent[count++] = i;
    }
    return await_confirms(broker, sent, count);
}

static int renew_channel(amqp_connection_state_t broker)
{
    amqp_channel_close(broker, BROKER_CHANNEL, AMQP_REPLY_SUCCESS);
    amqp_channel_open(broker, BROKER_CHANNEL);
    return broker_ok(broker, "open channel");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: inject-amqp QUEUE <messages\n");
        return 64;
    }
    amqp_connection_state_t broker = broker_open_within(PATIENCE);
    while (fill_window()) {
        while (!send_window(broker, argv[1])) {
            amqp_destroy_connection(broker);
            broker = broker_open_within(PATIENCE);
        }
        if (!renew_channel(broker)) {
            amqp_destroy_connection(broker);
            broker = broker_open_within(PATIENCE);
        }
    }
    broker_close(broker);
    return 0;
}

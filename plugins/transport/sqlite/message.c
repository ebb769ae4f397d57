/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/transport/sqlite/transport.h"

/* Columns of every statement that reads messages. */
enum { COLUMN_SEQ, COLUMN_ID, COLUMN_KEY, COLUMN_HEADERS, COLUMN_BODY };

typedef struct part {
    const void *data;
    size_t size;
} part;

static part column(sqlite3_stmt *row, int number)
{
    const void *data = sqlite3_column_blob(row, number);
    return (part){ data, data ? (size_t)sqlite3_column_bytes(row, number) : 0 };
}

static unsigned char *put(unsigned char *at, part from)
{
    if (from.size)
        memcpy(at, from.data, from.size);
    at[from.size] = '\0';
    return at + from.size + 1;
}

/* One allocation a message: the struct, its headers, and the bytes of the row. */
message *message_read(sqlite3_stmt *row)
{
    part id = column(row, COLUMN_ID);
    part key = column(row, COLUMN_KEY);
    part blob = column(row, COLUMN_HEADERS);
    part body = column(row, COLUMN_BODY);
    size_t count = codec_count(blob.data, blob.size);
    size_t fixed = sizeof(message) + count * sizeof(wb_header);
    unsigned char *memory = malloc(fixed + id.size + key.size + blob.size + body.size + 4);
    if (!memory)
        return NULL;
    message *read = (message *)memory;
    wb_header *headers = (wb_header *)(memory + sizeof(message));
    unsigned char *at_id = memory + fixed;
    unsigned char *at_key = put(at_id, id);
    unsigned char *at_blob = put(at_key, key);
    unsigned char *at_body = put(at_blob, blob);
    (void)put(at_body, body);
    int damaged = codec_decode(at_blob, blob.size, headers, count) < 0;
    *read = (message){
        .seq = sqlite3_column_int64(row, COLUMN_SEQ),
        .incoming = { .struct_size = sizeof(wb_incoming),
                      .id = id.size ? (const char *)at_id : NULL,
                      .id_size = id.size,
                      .headers = headers,
                      .header_count = damaged ? 0 : count,
                      .body = at_body,
                      .body_size = body.size,
                      .key = key.size ? (const char *)at_key : NULL,
                      .key_size = key.size,
                      .problem = damaged ? "its headers are damaged" : NULL },
    };
    return read;
}

void message_hold(wb_transport_session *session, message *held)
{
    held->previous = NULL;
    held->next = session->in_hand;
    if (session->in_hand)
        session->in_hand->previous = held;
    session->in_hand = held;
}

void message_forget(wb_transport_session *session, message *forgotten)
{
    claim *owner = forgotten->claim;
    if (forgotten->previous)
        forgotten->previous->next = forgotten->next;
    else
        session->in_hand = forgotten->next;
    if (forgotten->next)
        forgotten->next->previous = forgotten->previous;
    free(forgotten);
    if (owner && --owner->held == 0)
        claim_forget(session, owner);
}

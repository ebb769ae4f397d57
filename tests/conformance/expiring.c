/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/conformance/expiring.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <waybill/sys/expiry.h>

#define HEADERS_MAX 64
#define ASKED "NServiceBus.TimeToBeReceived"
#define HIDDEN "expiring.TimeToBeReceived"

static expiring_fault fault;

static int is(const wb_header *header, const char *name)
{
    return strcmp(header->name, name) == 0;
}

/* ---- never: the header is hidden on its way ----------------------------------------------- */

typedef struct {
    wb_operation operation;
    wb_header headers[HEADERS_MAX];
} copy;

static wb_operation *hide(const wb_operation *operation, copy *to)
{
    if (operation->header_count > HEADERS_MAX)
        abort();
    to->operation = *operation;
    memcpy(to->headers, operation->headers, operation->header_count * sizeof *to->headers);
    for (size_t i = 0; i < operation->header_count; i++)
        if (is(&to->headers[i], ASKED))
            to->headers[i].name = HIDDEN, to->headers[i].name_size = sizeof HIDDEN - 1;
    to->operation.headers = to->headers;
    return &to->operation;
}

static int asks(const wb_operation *operation)
{
    for (size_t i = 0; i < operation->header_count; i++)
        if (is(&operation->headers[i], ASKED))
            return 1;
    return 0;
}

static int hiding_send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                       int64_t deadline, wb_error *error)
{
    wb_operation **sent = calloc(count + 1, sizeof *sent);
    copy *copies = calloc(count + 1, sizeof *copies);
    if (!sent || !copies)
        abort();
    for (size_t i = 0; i < count; i++)
        sent[i] = asks(operations[i]) ? hide(operations[i], &copies[i]) : operations[i];
    int result = whole()->send(session, sent, count, deadline, error);
    for (size_t i = 0; i < count; i++) {
        operations[i]->result = sent[i]->result;
        operations[i]->cause = sent[i]->cause;
        operations[i]->reason = sent[i]->reason;
    }
    free(copies);
    free((void *)sent);
    return result;
}

static void show(const wb_incoming *message)
{
    wb_header *headers = (wb_header *)(uintptr_t)message->headers;
    for (size_t i = 0; i < message->header_count; i++)
        if (is(&headers[i], HIDDEN))
            headers[i].name = ASKED, headers[i].name_size = sizeof ASKED - 1;
}

/* ---- too much: dropped, and settled as it should be ---------------------------------------- */

static int is_dropped(const wb_incoming *message)
{
    struct timespec now;
    int64_t span = 0;
    const wb_header *asked = WB_EXPIRY_FIND(message->headers, message->header_count, ASKED);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (!asked || !wb_expiry_parse(asked->value, asked->value_size, &span) || !span)
        return 0;
    int64_t lay = now.tv_sec * WB_SECONDS + now.tv_nsec - wb_time_sent(message->headers, message->header_count);
    return lay >= (fault == EXPIRING_EARLY ? span / 100 : span) &&
           (fault == EXPIRING_ANYTHING || wb_time_to_be_received(message->headers, message->header_count));
}

static int expiring_receive(wb_transport_session *session, int64_t deadline,
                            const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                            wb_error *error)
{
    size_t left = 0;
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; result == WB_OK && i < *ret_count; i++) {
        show(ret_messages[i]);
        if (fault != EXPIRING_NEVER && is_dropped(ret_messages[i]))
            result = whole()->acknowledge(session, &ret_messages[i], 1, error);
        else
            ret_messages[left++] = ret_messages[i];
    }
    *ret_count = left;
    return result;
}

void expiring_use(wb_transport_ops *ops, expiring_fault wanted)
{
    fault = wanted;
    ops->receive = expiring_receive;
    if (fault == EXPIRING_NEVER)
        ops->send = hiding_send;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/conformance/delaying.h"
#include "tests/support/text_header.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOW_MAX 1024
#define HEADERS_MAX 64
#define WAITING_MAX 256
#define HALF_A_SECOND INT64_C(500000000)
#define DUE_HEADER "delaying.due"

/* What a session holds back. */
typedef struct {
    wb_transport_session *session; /* NULL: a free place */
    const wb_incoming *message;
    int64_t due;
} place;

static place places[WAITING_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static delaying_fault fault;

static int64_t read_clock(clockid_t which)
{
    struct timespec now;
    (void)clock_gettime(which, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- sending: with a header that says when ------------------------------------------------ */

typedef struct {
    wb_operation operation;
    wb_header headers[HEADERS_MAX];
    char due[24];
} marked;

static wb_operation *mark(const wb_operation *operation, marked *copy)
{
    if (operation->header_count >= HEADERS_MAX)
        abort();
    copy->operation = *operation;
    memcpy(copy->headers, operation->headers, operation->header_count * sizeof *copy->headers);
    (void)snprintf(copy->due, sizeof copy->due, "%lld", (long long)operation->deliver_at);
    copy->headers[copy->operation.header_count++] = text_header(DUE_HEADER, copy->due);
    copy->operation.headers = copy->headers;
    copy->operation.deliver_at = 0;
    return &copy->operation;
}

static void take_results(wb_operation *const *operations, wb_operation *const *sent, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        operations[i]->result = sent[i]->result;
        operations[i]->cause = sent[i]->cause;
        operations[i]->reason = sent[i]->reason;
    }
}

static int delaying_send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                         int64_t deadline, wb_error *error)
{
    wb_operation *sent[WINDOW_MAX];
    marked *copies = calloc(count + 1, sizeof *copies);
    if (!copies || count > WINDOW_MAX)
        abort();
    for (size_t i = 0; i < count; i++)
        sent[i] = operations[i]->deliver_at ? mark(operations[i], &copies[i]) : operations[i];
    int result = whole()->send(session, sent, count, deadline, error);
    take_results(operations, sent, count);
    free(copies);
    return result;
}

/* ---- receiving ---------------------------------------------------------------------------- */

/* When it is due; the header goes, and what it takes along. 0: it does not wait. */
static int64_t unmark(const wb_incoming *message)
{
    wb_incoming *changed = (wb_incoming *)(uintptr_t)message;
    const wb_header *last = message->headers + message->header_count - 1;
    if (!message->header_count || strcmp(last->name, DUE_HEADER) != 0)
        return 0;
    int64_t due = strtoll(last->value, NULL, 10);
    changed->header_count -= fault == DELAYING_LOSES_HEADERS ? 2 : 1;
    return fault == DELAYING_EARLY ? due - HALF_A_SECOND : due;
}

static void hold(wb_transport_session *session, const wb_incoming *message, int64_t due)
{
    place *free_place = places;
    (void)pthread_mutex_lock(&lock);
    while (free_place->session)
        if (++free_place == places + WAITING_MAX)
            abort();
    *free_place = (place){ session, message, due };
    (void)pthread_mutex_unlock(&lock);
}

/* What is due now. @return how many; *ret_next is when the next one is. */
static size_t take_due(const wb_transport_session *session, const wb_incoming **ret_messages, size_t max,
                       int64_t *ret_next)
{
    size_t count = 0;
    int64_t now = read_clock(CLOCK_REALTIME);
    *ret_next = INT64_MAX;
    (void)pthread_mutex_lock(&lock);
    for (place *at = places; at < places + WAITING_MAX; at++) {
        if (at->session != session)
            continue;
        if (at->due <= now && count < max) {
            ret_messages[count++] = at->message;
            at->session = NULL;
        } else if (at->due < *ret_next)
            *ret_next = at->due;
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

/* Of what came, what is not due is held back. @return how many are left. */
static size_t hold_back(wb_transport_session *session, const wb_incoming **messages, size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t due = unmark(messages[i]);
        if (due > read_clock(CLOCK_REALTIME))
            hold(session, messages[i], due);
        else
            messages[left++] = messages[i];
    }
    return left;
}

static int64_t until(int64_t deadline, int64_t next)
{
    if (next == INT64_MAX)
        return deadline;
    next += read_clock(CLOCK_MONOTONIC) - read_clock(CLOCK_REALTIME);
    return next < deadline ? next : deadline;
}

/* An interrupt ends it as well: then nothing came before the time. */
static int delaying_receive(wb_transport_session *session, int64_t deadline,
                            const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                            wb_error *error)
{
    int64_t next;
    for (;;) {
        *ret_count = take_due(session, ret_messages, max, &next);
        if (*ret_count)
            return WB_OK;
        int64_t latest = until(deadline, next);
        int result = whole()->receive(session, latest, ret_messages, max, ret_count, error);
        size_t came = *ret_count;
        *ret_count = hold_back(session, ret_messages, came);
        if (result != WB_OK || *ret_count || read_clock(CLOCK_MONOTONIC) >= deadline)
            return result;
        if (!came && read_clock(CLOCK_MONOTONIC) < latest)
            return result;
    }
}

static void delaying_close(wb_transport_session *session)
{
    (void)pthread_mutex_lock(&lock);
    for (place *at = places; at < places + WAITING_MAX; at++)
        if (at->session == session)
            at->session = NULL;
    (void)pthread_mutex_unlock(&lock);
    whole()->close(session);
}

void delaying_use(wb_plugin *descriptor, wb_transport_ops *ops, delaying_fault wanted)
{
    fault = wanted;
    descriptor->capabilities |= WB_CAP_DELAY;
    ops->send = delaying_send;
    ops->receive = delaying_receive;
    ops->close = delaying_close;
}

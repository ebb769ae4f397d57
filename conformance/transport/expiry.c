/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages with a time to be received: gone after it, there before it, and without one, or received
 * once already, there for ever. Nobody receives while they lie: a broker may hand out what it can at
 * once, and then they are received. That what expired is settled cannot be seen from here.
 */
#include "config.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "conformance/transport/same.h"
#include "conformance/transport/steps.h"

#define SHORT "00:00:00.2000000"
#define LONG "00:00:20"
#define LONGER_THAN_SHORT WB_SECOND
#define HEADERS 5

/* A letter with its headers; those of the kit's come first. */
typedef struct {
    wb_tk_letter letter;
    char sent[WB_TIMESTAMP_SIZE];
    wb_header headers[HEADERS];
} parcel;

/* For OTHER, which nobody receives from; `span` and `mark` may be NULL. */
static void pack(wb_kit *kit, parcel *p, size_t number, const char *span, const char *mark)
{
    wb_operation *operation = &p->letter.operation;
    wb_tk_write(kit, &p->letter, wb_tk_of(kit)->queues[WB_TK_OTHER], "k", number);
    memcpy(p->headers, p->letter.headers, sizeof p->letter.headers);
    wb_clock_format_wire(wb_clock_wall(), p->sent);
    p->headers[operation->header_count++] = wb_tk_header("NServiceBus.TimeSent", p->sent);
    if (span)
        p->headers[operation->header_count++] = wb_tk_header("NServiceBus.TimeToBeReceived", span);
    if (mark)
        p->headers[operation->header_count++] = wb_tk_header(mark, "1");
    operation->headers = p->headers;
}

/* What an earlier run has left at OTHER may expire as well, and the host would be told of it. */
static int empty_other(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_open(kit, WB_TK_OTHER, wb_tk_of(kit)->mode, 100);
    const int is_empty = s && wb_tk_expect_empty(s);
    if (s)
        wb_tk_close(s);
    return is_empty;
}

static int post(wb_kit *kit, parcel *parcels, size_t count)
{
    wb_operation *operations[16];
    wb_tk_session *sender = wb_tk_sender(kit);
    for (size_t i = 0; i < count; i++)
        operations[i] = &parcels[i].letter.operation;
    return sender && empty_other(kit) && wb_tk_send(sender, operations, count);
}

static wb_tk_session *open_later(wb_kit *kit, int mode)
{
    wb_clock_pause(LONGER_THAN_SHORT, NULL);
    return wb_tk_open(kit, WB_TK_OTHER, mode, 100);
}

/* Of those that the broker drops itself, all or some, nobody is told. */
static void expect_told(const wb_tk_session *s, uint64_t expired)
{
    const uint64_t told = atomic_load(&s->instance->host.expired);
    wb_kit_check(&s->tk->kit, told <= expired, "%" PRIu64 " messages expired, the host is told of %" PRIu64,
                 expired, told);
}

/* Each of those is there, as it was sent, and nothing else; `expired` are not. */
static void expect(wb_tk_session *s, const parcel *parcels, const size_t *numbers, size_t count, size_t expired)
{
    if (!s || !wb_tk_collect(s, count) || !wb_tk_expect_set(s, numbers, count))
        return;
    for (size_t i = 0; i < count; i++)
        wb_tk_expect_same(&s->tk->kit, s->in_hand[i],
                          &parcels[wb_tk_number(s->in_hand[i])].letter.operation);
    if (wb_tk_finish(s) && wb_tk_expect_empty(s))
        expect_told(s, expired);
}

/* First, last, and between those that do not expire. */
static void what_expired_is_gone(wb_kit *kit)
{
    static const char *const spans[] = { SHORT, NULL, SHORT, SHORT, LONG, NULL, SHORT };
    static const size_t left[] = { 1, 4, 5 };
    enum { COUNT = sizeof spans / sizeof *spans };
    parcel parcels[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        pack(kit, &parcels[i], i, spans[i], NULL);
    if (post(kit, parcels, COUNT))
        expect(open_later(kit, wb_tk_of(kit)->mode), parcels, left, 3, COUNT - 3);
}

static void before_it_expires(wb_kit *kit)
{
    static const size_t all[] = { 0, 1 };
    parcel parcels[2];
    pack(kit, &parcels[0], 0, LONG, NULL);
    pack(kit, &parcels[1], 1, LONG, NULL);
    if (post(kit, parcels, 2))
        expect(open_later(kit, wb_tk_of(kit)->mode), parcels, all, 2, 0);
}

/* An error queue's copy, an audit copy, a delayed retry, what came back from an error queue. */
static void received_once(wb_kit *kit)
{
    static const char *const marks[] = { "NServiceBus.FailedQ", "NServiceBus.ProcessingEnded",
                                         "NServiceBus.Retries", "ServiceControl.Retry.UniqueMessageId" };
    static const size_t all[] = { 0, 1, 2, 3 };
    enum { COUNT = sizeof marks / sizeof *marks };
    parcel parcels[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        pack(kit, &parcels[i], i, SHORT, marks[i]);
    if (post(kit, parcels, COUNT))
        expect(open_later(kit, wb_tk_of(kit)->mode), parcels, all, COUNT, 0);
}

/* Whatever else the header says. */
static void no_time(wb_kit *kit)
{
    static const char *const spans[] = { "soon", "", "-00:00:01", "00:00:00", "10675199.02:48:05.4775807" };
    static const size_t all[] = { 0, 1, 2, 3, 4 };
    enum { COUNT = sizeof spans / sizeof *spans };
    parcel parcels[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        pack(kit, &parcels[i], i, spans[i], NULL);
    if (post(kit, parcels, COUNT))
        expect(open_later(kit, wb_tk_of(kit)->mode), parcels, all, COUNT, 0);
}

static void with_mode_none(wb_kit *kit)
{
    static const size_t left[] = { 1 };
    parcel parcels[3];
    for (size_t i = 0; i < 3; i++)
        pack(kit, &parcels[i], i, i == 1 ? NULL : SHORT, NULL);
    if (post(kit, parcels, 3))
        expect(open_later(kit, WB_MODE_NONE), parcels, left, 1, 2);
}

/* Many, and then one: what is dropped takes no one's place. */
static void many_expired(wb_kit *kit)
{
    static const size_t left[] = { 15 };
    parcel parcels[16];
    wb_tk_session *s;
    for (size_t i = 0; i < 16; i++)
        pack(kit, &parcels[i], i, i < 15 ? SHORT : NULL, NULL);
    if (!post(kit, parcels, 16))
        return;
    wb_clock_pause(LONGER_THAN_SHORT, NULL);
    s = wb_tk_open(kit, WB_TK_OTHER, wb_tk_of(kit)->mode, 1);
    expect(s, parcels, left, 1, 15);
}

#define EXPIRES (WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_EXPIRY)

const wb_kit_case wb_tk_expiry_cases[] = {
    { "a message that expired does not come, those around it do", EXPIRES, what_expired_is_gone },
    { "a message does not expire before its time", EXPIRES, before_it_expires },
    { "what was received once expires no more", EXPIRES, received_once },
    { "a time to be received that is none is a header", EXPIRES, no_time },
    { "with a prefetch of one, too, many that expired hold up none", EXPIRES, many_expired },
    { "mode none: a message that expired does not come", WB_CAP_MODE_NONE | WB_CAP_EXPIRY, with_mode_none },
};
WB_TK_CASES(expiry);

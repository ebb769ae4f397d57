/* SPDX-License-Identifier: Apache-2.0
 *
 * Acknowledges what is in front of an acknowledged message, too: the flag that a protocol has
 * for it, used without a look. It shows when the session ends.
 */
#include "config.h"

#include <string.h>

#include "tests/conformance/broken.h"

#define SESSIONS_MAX 64
#define IN_HAND_MAX 1024

typedef struct {
    wb_transport_session *session; /* NULL: a free place */
    const wb_incoming *in_hand[IN_HAND_MAX];
    size_t count;
    size_t covered; /* so many of them are in front of one that was acknowledged */
} place;

static _Thread_local place places[SESSIONS_MAX];

/* By thread: the kit uses and ends a session in the thread that opened it, but for a few, of
 * which nothing is known here. */
static place *place_of(const wb_transport_session *session)
{
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        if (places[i].session == session)
            return &places[i];
    return NULL;
}

static int open_session(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                        wb_transport_session **ret_session, wb_error *error)
{
    int result = whole()->open(transport, purpose, prefetch, ret_session, error);
    /* one that another thread has closed may have stood at this address */
    place *mine = result == WB_OK ? place_of(*ret_session) : NULL;
    if (!mine)
        mine = place_of(NULL);
    if (result == WB_OK && mine)
        *mine = (place){ .session = *ret_session };
    return result;
}

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    place *mine = place_of(session);
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    for (size_t i = 0; mine && i < *ret_count && mine->count < IN_HAND_MAX; i++)
        mine->in_hand[mine->count++] = ret_messages[i];
    return result;
}

static void forget(place *mine, const wb_incoming *message, int is_acknowledged)
{
    size_t at = 0;
    while (at < mine->count && mine->in_hand[at] != message)
        at++;
    if (at == mine->count)
        return;
    mine->count--;
    memmove((void *)(mine->in_hand + at), (const void *)(mine->in_hand + at + 1),
            (mine->count - at) * sizeof *mine->in_hand);
    if (at < mine->covered)
        mine->covered--;
    else if (is_acknowledged)
        mine->covered = at;
}

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                       size_t count, wb_error *error)
{
    place *mine = place_of(session);
    for (size_t i = 0; mine && i < count; i++)
        forget(mine, messages[i], 1);
    return whole()->acknowledge(session, messages, count, error);
}

static int give_back(wb_transport_session *session, const wb_incoming *const *messages,
                     size_t count, wb_error *error)
{
    place *mine = place_of(session);
    for (size_t i = 0; mine && i < count; i++)
        forget(mine, messages[i], 0);
    return whole()->give_back(session, messages, count, error);
}

static void close_session(wb_transport_session *session)
{
    place *mine = place_of(session);
    if (mine && mine->covered)
        (void)whole()->acknowledge(session, mine->in_hand, mine->covered, NULL);
    if (mine)
        mine->session = NULL;
    whole()->close(session);
}

BROKEN(multiple, ops.open = open_session; ops.receive = receive; ops.acknowledge = acknowledge;
       ops.give_back = give_back; ops.close = close_session)

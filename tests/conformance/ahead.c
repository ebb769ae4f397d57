/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/conformance/ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SESSIONS_MAX 64
#define AHEAD_MAX 256
#define LITTLE_ROOM 10

/* What a session has read and not handed out. `lock` is held by each of its calls. */
typedef struct {
    wb_transport_session *session; /* NULL: a free place */
    pthread_mutex_t lock;
    const wb_incoming *waiting[AHEAD_MAX];
    size_t count;
    size_t in_hand;
    size_t prefetch;
    size_t asked; /* with little room: the prefetch of what is on its way, or 0 */
    int is_stopped;
    atomic_int is_released; /* while a call had the lock: it gives up what waits at its end */
} place;

static place places[SESSIONS_MAX];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static ahead_fault fault;

/* Instances in mode none: what that hands out is gone, so it has no room ahead. The kit makes
 * few; they live as long as the process. */
#define FORGETFUL_MAX 1024
static const wb_transport *forgetful[FORGETFUL_MAX];
static size_t forgetful_count;

/* The place of a session; of NULL: a free one. */
static place *place_of(const wb_transport_session *session)
{
    place *found = places;
    (void)pthread_mutex_lock(&places_lock);
    while (found->session != session)
        if (++found == places + SESSIONS_MAX)
            abort();
    (void)pthread_mutex_unlock(&places_lock);
    return found;
}

static int is_forgetful(const wb_transport *transport)
{
    for (size_t i = 0; i < forgetful_count; i++)
        if (forgetful[i] == transport)
            return 1;
    return 0;
}

/* The whole one reads bodies over the limit one at a time: it is told of none. What it was told
 * lives as long as the process. */
static const wb_endpoint_info *without_bound(const wb_endpoint_info *endpoint)
{
    static wb_endpoint_info *told[4096];
    static size_t count;
    wb_endpoint_info *changed = malloc(sizeof *changed);
    if (!changed || count == sizeof told / sizeof *told)
        abort();
    *changed = *endpoint;
    changed->body_max = INT64_MAX;
    told[count++] = changed;
    return changed;
}

static int ahead_create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                        wb_transport **ret_transport, wb_error *error)
{
    if (fault == AHEAD_HAS_NO_BOUND)
        endpoint = without_bound(endpoint);
    int result = whole()->create(host, endpoint, config, ret_transport, error);
    if (result == WB_OK && endpoint->mode == WB_MODE_NONE && forgetful_count < FORGETFUL_MAX)
        forgetful[forgetful_count++] = *ret_transport;
    return result;
}

static void ahead_destroy(wb_transport *transport)
{
    for (size_t i = 0; i < forgetful_count; i++)
        if (forgetful[i] == transport)
            forgetful[i] = NULL;
    whole()->destroy(transport);
}

static int ahead_open(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                      wb_transport_session **ret_session, wb_error *error)
{
    int result = whole()->open(transport, purpose, prefetch, ret_session, error);
    if (result != WB_OK)
        return result;
    place *mine = place_of(NULL); /* sessions are opened by one thread */
    memset(mine, 0, sizeof *mine);
    (void)pthread_mutex_init(&mine->lock, NULL);
    mine->prefetch = is_forgetful(transport) ? 0 : prefetch;
    mine->session = *ret_session;
    return WB_OK;
}

static void ahead_close(wb_transport_session *session)
{
    place *mine = place_of(session);
    whole()->close(session);
    (void)pthread_mutex_destroy(&mine->lock);
    mine->session = NULL;
}

/* ---- giving up ---------------------------------------------------------------------------- */

static int give_up_waiting(place *mine, wb_error *error)
{
    size_t lost = fault == AHEAD_RELEASE_LOSES_ONE && mine->count;
    int result = whole()->give_back(mine->session, mine->waiting + lost, mine->count - lost, error);
    mine->count = 0;
    return result;
}

/* At the end of each call. */
static void leave(place *mine)
{
    if (atomic_exchange(&mine->is_released, 0))
        (void)give_up_waiting(mine, NULL);
    (void)pthread_mutex_unlock(&mine->lock);
}

/* ---- receiving --------------------------------------------------------------------------- */

static size_t hand_out(place *mine, const wb_incoming **ret_messages, size_t max)
{
    size_t count = mine->count < max ? mine->count : max;
    memcpy((void *)ret_messages, (const void *)mine->waiting, count * sizeof *ret_messages);
    mine->count -= count;
    memmove((void *)mine->waiting, (const void *)(mine->waiting + count),
            mine->count * sizeof *mine->waiting);
    mine->in_hand += count;
    return count;
}

static int read_more(place *mine, int64_t deadline, size_t max, wb_error *error)
{
    size_t count = 0;
    int result = whole()->receive(mine->session, deadline, mine->waiting + mine->count, max,
                                  &count, error);
    mine->count += count;
    if (count)
        mine->asked = 0;
    if (result == WB_OK && count && count < max && fault == AHEAD_HAS_NO_BOUND)
        return read_more(mine, 0, max - count, error);
    return result;
}

/* In mode none there is no prefetch. */
static int follows_prefetch(const place *mine)
{
    return (fault == AHEAD_NEVER_SHRINKS || fault == AHEAD_HAS_LITTLE_ROOM) && mine->prefetch;
}

static size_t room_of(const place *mine)
{
    size_t most = mine->asked ? mine->asked : mine->prefetch;
    if (fault == AHEAD_HAS_LITTLE_ROOM && most > LITTLE_ROOM)
        most = LITTLE_ROOM;
    return most > mine->in_hand ? most - mine->in_hand : 0;
}

/* Where nothing may come: whoever waits for more asks again. */
static void wait_a_moment(void)
{
    const struct timespec moment = { 0, 10000000 };
    (void)nanosleep(&moment, NULL);
}

static int ahead_receive(wb_transport_session *session, int64_t deadline,
                         const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                         wb_error *error)
{
    int result = WB_OK;
    place *mine = place_of(session);
    (void)pthread_mutex_lock(&mine->lock);
    size_t room = room_of(mine);
    if (room < max && !follows_prefetch(mine))
        room = max;
    if (!mine->count && !mine->is_stopped && room)
        result = read_more(mine, deadline, room, error);
    else if (!mine->count && !mine->is_stopped)
        wait_a_moment();
    *ret_count = result == WB_OK ? hand_out(mine, ret_messages, max) : 0;
    leave(mine);
    return result;
}

static int ahead_set_prefetch(wb_transport_session *session, uint32_t prefetch, wb_error *error)
{
    place *mine = place_of(session);
    (void)error;
    (void)pthread_mutex_lock(&mine->lock);
    if (fault == AHEAD_HAS_LITTLE_ROOM && prefetch < mine->prefetch)
        mine->asked = mine->prefetch;
    if (follows_prefetch(mine) && (prefetch > mine->prefetch || mine->asked))
        mine->prefetch = prefetch;
    leave(mine);
    return WB_OK;
}

static int ahead_stop(wb_transport_session *session, wb_error *error)
{
    int result = WB_OK;
    place *mine = place_of(session);
    (void)pthread_mutex_lock(&mine->lock);
    mine->is_stopped = 1;
    if (fault == AHEAD_STOP_GIVES_BACK)
        result = give_up_waiting(mine, error);
    leave(mine);
    return result;
}

/* Never waits for a call of the session's own thread, which may wait for messages. */
static void ahead_release(wb_transport_session *session)
{
    place *mine = place_of(session);
    atomic_store(&mine->is_released, 1);
    if (pthread_mutex_trylock(&mine->lock) == 0)
        leave(mine);
}

/* ---- the rest: nothing may run beside release_prefetched() --------------------------------- */

#define LOCKED(name, call, ...)                                                                    \
    static int ahead_##name(wb_transport_session *session, __VA_ARGS__)                            \
    {                                                                                              \
        place *mine = place_of(session);                                                           \
        (void)pthread_mutex_lock(&mine->lock);                                                     \
        int result = whole()->call;                                                                \
        leave(mine);                                                                               \
        return result;                                                                             \
    }

LOCKED(send, send(session, operations, count, deadline, error), wb_operation *const *operations,
       size_t count, int64_t deadline, wb_error *error)
LOCKED(begin, begin(session, error), wb_error *error)
LOCKED(commit, commit(session, error), wb_error *error)
LOCKED(rollback, rollback(session, error), wb_error *error)

static int settle(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                  int (*how)(wb_transport_session *session, const wb_incoming *const *messages,
                             size_t count, wb_error *error),
                  wb_error *error)
{
    place *mine = place_of(session);
    (void)pthread_mutex_lock(&mine->lock);
    mine->in_hand -= count < mine->in_hand ? count : mine->in_hand;
    int result = how(session, messages, count, error);
    leave(mine);
    return result;
}

static int ahead_acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                             size_t count, wb_error *error)
{
    return settle(session, messages, count, whole()->acknowledge, error);
}

static int ahead_give_back(wb_transport_session *session, const wb_incoming *const *messages,
                           size_t count, wb_error *error)
{
    return settle(session, messages, count, whole()->give_back, error);
}

void ahead_use(wb_transport_ops *ops, ahead_fault wanted)
{
    fault = wanted;
    ops->create = ahead_create;
    ops->destroy = ahead_destroy;
    ops->open = ahead_open;
    ops->close = ahead_close;
    ops->receive = ahead_receive;
    ops->acknowledge = ahead_acknowledge;
    ops->give_back = ahead_give_back;
    ops->send = ahead_send;
    ops->begin = ahead_begin;
    ops->commit = ahead_commit;
    ops->rollback = ahead_rollback;
    if (fault == AHEAD_NEVER_SHRINKS || fault == AHEAD_HAS_LITTLE_ROOM)
        ops->set_prefetch = ahead_set_prefetch;
    ops->stop_receiving = ahead_stop;
    ops->release_prefetched = ahead_release;
    ops->struct_size = sizeof *ops;
}

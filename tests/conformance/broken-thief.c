/* SPDX-License-Identifier: Apache-2.0
 *
 * Whoever finds nothing some times takes what another session holds, as if that one were dead.
 */
#include "config.h"

#include <pthread.h>

#include "tests/conformance/broken.h"

#define HANDS_MAX 64
#define FOUND_NOTHING 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static struct {
    wb_transport_session *holder;
    const wb_incoming *message;
} hands[HANDS_MAX];
static const wb_incoming *stolen[HANDS_MAX];
static wb_transport_session *seeker;
static unsigned in_vain;

static void hold(wb_transport_session *session, const wb_incoming *message)
{
    for (size_t i = 0; i < HANDS_MAX; i++)
        if (!hands[i].message) {
            hands[i].holder = session;
            hands[i].message = message;
            return;
        }
}

static void let_go(const wb_incoming *message)
{
    for (size_t i = 0; i < HANDS_MAX; i++)
        if (hands[i].message == message)
            hands[i].message = NULL;
}

static int is_stolen(const wb_incoming *message)
{
    for (size_t i = 0; i < HANDS_MAX; i++)
        if (stolen[i] == message)
            return 1;
    return 0;
}

static void steal_from_others(wb_transport_session *session)
{
    for (size_t i = 0; i < HANDS_MAX; i++)
        if (hands[i].message && hands[i].holder != session) {
            stolen[i] = hands[i].message;
            hands[i].message = NULL;
            (void)whole()->give_back(hands[i].holder, &stolen[i], 1, NULL);
        }
}

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count, wb_error *error)
{
    int result = whole()->receive(session, deadline, ret_messages, max, ret_count, error);
    (void)pthread_mutex_lock(&lock);
    in_vain = result == WB_OK && !*ret_count && session == seeker ? in_vain + 1 : 0;
    seeker = session;
    if (in_vain == FOUND_NOTHING)
        steal_from_others(session);
    for (size_t i = 0; result == WB_OK && i < *ret_count; i++)
        hold(session, ret_messages[i]);
    (void)pthread_mutex_unlock(&lock);
    return result;
}

/* What was stolen is not there any more; the holder is told that all is well. */
static int settle(int (*call)(wb_transport_session *, const wb_incoming *const *, size_t, wb_error *),
                  wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                  wb_error *error)
{
    const wb_incoming *mine[1024];
    size_t left = 0;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && left < 1024; i++) {
        let_go(messages[i]);
        if (!is_stolen(messages[i]))
            mine[left++] = messages[i];
    }
    (void)pthread_mutex_unlock(&lock);
    return call(session, mine, left, error);
}

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                       wb_error *error)
{
    return settle(whole()->acknowledge, session, messages, count, error);
}

static int give_back(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                     wb_error *error)
{
    return settle(whole()->give_back, session, messages, count, error);
}

static void close_session(wb_transport_session *session)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < HANDS_MAX; i++)
        if (hands[i].holder == session)
            hands[i].message = stolen[i] = NULL;
    (void)pthread_mutex_unlock(&lock);
    whole()->close(session);
}

BROKEN(thief, ops.receive = receive; ops.acknowledge = acknowledge; ops.give_back = give_back; ops.close = close_session)

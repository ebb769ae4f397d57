/* SPDX-License-Identifier: Apache-2.0
 *
 * The run, its instances and its sessions.
 */
#include "config.h"

#include "conformance/transport/steps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/arena.h"

#define SHARED_PREFETCH 256
#define SWEEP_MARKER 999998
#define RETRY_EVERY (100 * WB_MILLISECOND)
/* Both of a pair must have got messages so often, one after the other. */
#define SETTLED_AFTER 3

wb_tk *wb_tk_of(wb_kit *kit)
{
    return (wb_tk *)kit;
}

int64_t wb_tk_in(const wb_tk *tk, int64_t duration)
{
    (void)tk;
    return wb_clock_monotonic() + duration;
}

/* ---- the run --------------------------------------------------------------------------- */

static int first_mode(uint64_t capabilities)
{
    if (capabilities & WB_CAP_MODE_RECEIVE_ONLY)
        return WB_MODE_RECEIVE_ONLY;
    for (int mode = WB_MODE_NONE; mode <= WB_MODE_TRANSACTION_SCOPE; mode++)
        if (capabilities & (WB_CAP_MODE_NONE << mode))
            return mode;
    return WB_MODE_NONE;
}

void wb_tk_init(wb_tk *tk, const wb_endpoint_setup *endpoint, const wb_kit_options *options,
                FILE *out)
{
    const char *name = endpoint->config->name;
    uint64_t token;
    *tk = (wb_tk){ .kit = { .endpoint = endpoint,
                            .plugin = endpoint->transport,
                            .options = options,
                            .out = out },
                   .ops = endpoint->transport_ops,
                   .mode = first_mode(endpoint->transport->capabilities),
                   .patience = options->patience };
    if (getrandom(&token, sizeof token, 0) != (ssize_t)sizeof token)
        token = (uint64_t)wb_clock_wall();
    (void)snprintf(tk->token, sizeof tk->token, "%016" PRIx64, token);
    (void)snprintf(tk->queues[WB_TK_MAIN], WB_TK_NAME_SIZE, "%s.conformance", name);
    (void)snprintf(tk->queues[WB_TK_OTHER], WB_TK_NAME_SIZE, "%s.conformance.2", name);
    (void)snprintf(tk->queues[WB_TK_ERROR], WB_TK_NAME_SIZE, "%s.conformance.error", name);
    (void)snprintf(tk->queues[WB_TK_FURTHER], WB_TK_NAME_SIZE, "%s.conformance.3", name);
    (void)snprintf(tk->event, WB_TK_NAME_SIZE, "%s.conformance.Happened", name);
    (void)snprintf(tk->unheard, WB_TK_NAME_SIZE, "%s.conformance.Unheard", name);
}

static int subscribes(const wb_tk *tk, const char *name)
{
    return strcmp(name, tk->queues[WB_TK_MAIN]) == 0 || strcmp(name, tk->queues[WB_TK_OTHER]) == 0;
}

int64_t wb_tk_body_max(const wb_tk *tk)
{
    int64_t configured = tk->kit.endpoint->config->body_max;
    return configured > WB_TK_BODY_SURE ? configured : WB_TK_BODY_SURE;
}

/* `change` may be NULL. */
static int create(wb_tk *tk, wb_tk_instance *made, const char *name, int mode,
                  void (*change)(wb_endpoint_info *info), wb_error *error)
{
    made->tk = tk;
    made->types[0] = tk->event;
    made->info = (wb_endpoint_info){
        .struct_size = sizeof made->info,
        .name = name,
        .error_queue = strcmp(name, tk->queues[WB_TK_ERROR]) == 0 ? NULL : tk->queues[WB_TK_ERROR],
        .mode = mode,
        .concurrency = 4,
        .batch_max = WB_TK_BATCH_MAX,
        .body_max = wb_tk_body_max(tk),
        .types = made->types,
        .type_count = subscribes(tk, name) && (tk->kit.plugin->capabilities & WB_CAP_PUBLISH),
        .headers_max = tk->kit.endpoint->info.headers_max,
        .headers_size_max = tk->kit.endpoint->info.headers_size_max,
        .delays = tk->kit.plugin->capabilities & WB_CAP_DELAY ? WB_DELAYS_BY_TRANSPORT
                                                              : WB_DELAYS_BY_NOBODY,
    };
    if (change)
        change(&made->info);
    wb_host_init(&made->host, made->info.name, tk->kit.plugin->name);
    return tk->ops->create(&made->host.host, &made->info, tk->kit.endpoint->transport_config,
                           &made->transport, error);
}

int wb_tk_install(wb_tk *tk, wb_error *error)
{
    static const int queues[] = { WB_TK_MAIN, WB_TK_OTHER };
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < sizeof queues / sizeof *queues; i++) {
        wb_tk_instance instance = { 0 };
        result = create(tk, &instance, tk->queues[queues[i]], tk->mode, NULL, error);
        if (result != WB_OK)
            break;
        result = tk->ops->install(instance.transport, error);
        tk->ops->destroy(instance.transport);
    }
    return result;
}

const char *wb_tk_own_name(wb_kit *kit, char name[WB_TK_OWN_SIZE])
{
    const wb_tk *tk = wb_tk_of(kit);
    (void)snprintf(name, WB_TK_OWN_SIZE, "%.200s.%s.%zu", tk->queues[WB_TK_MAIN], tk->token, kit->number);
    return name;
}

/* ---- instances ------------------------------------------------------------------------- */

static void destroy(void *argument)
{
    wb_tk_instance *instance = argument;
    if (instance->transport)
        instance->tk->ops->destroy(instance->transport);
    free(instance);
}

int wb_tk_is_ok(wb_kit *kit, int result, const wb_error *error, const char *doing)
{
    wb_kit_check(kit, result == WB_OK || error->result == result,
                 "%s: returned %s without saying so to the host", doing, wb_result_name(result));
    return wb_kit_check(kit, result == WB_OK, "%s: %s: %s", doing, wb_result_name(result),
                        error->text);
}

static wb_tk_instance *make_instance(wb_kit *kit, const char *name, int mode,
                                     void (*change)(wb_endpoint_info *info))
{
    wb_error error = { 0 };
    wb_tk_instance *made = wb_alloc_zero(1, sizeof *made);
    if (wb_tk_is_ok(kit, create(wb_tk_of(kit), made, name, mode, change, &error), &error,
                    "create"))
        return made;
    free(made);
    return NULL;
}

static wb_tk_instance *keep_instance(wb_kit *kit, wb_tk_instance *made)
{
    if (made)
        wb_kit_defer(kit, destroy, made);
    return made;
}

wb_tk_instance *wb_tk_instance_as(wb_kit *kit, const char *name, int mode,
                                  void (*change)(wb_endpoint_info *info))
{
    return keep_instance(kit, make_instance(kit, name, mode, change));
}

wb_tk_instance *wb_tk_instance_if_taken(wb_kit *kit, const char *name, int mode)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    wb_tk_instance *made = wb_alloc_zero(1, sizeof *made);
    int result = create(tk, made, name, mode, NULL, &error);
    wb_kit_defer(kit, destroy, made);
    if (result == WB_OK)
        result = tk->ops->install(made->transport, &error);
    if (result == WB_FATAL && error.result == result && error.text[0]) {
        wb_kit_skip(kit, "names of %zu bytes are refused: %s", strlen(name), error.text);
        return NULL;
    }
    return wb_tk_is_ok(kit, result, &error, "create and install") ? made : NULL;
}

wb_tk_instance *wb_tk_instance_named(wb_kit *kit, const char *name, int mode)
{
    return wb_tk_instance_as(kit, name, mode, NULL);
}

wb_tk_instance *wb_tk_instance_changed(wb_kit *kit, int queue, int mode,
                                       void (*change)(wb_endpoint_info *info))
{
    return wb_tk_instance_as(kit, wb_tk_of(kit)->queues[queue], mode, change);
}

wb_tk_instance *wb_tk_instance_make(wb_kit *kit, int queue, int mode)
{
    return wb_tk_instance_named(kit, wb_tk_of(kit)->queues[queue], mode);
}

/* ---- sessions -------------------------------------------------------------------------- */

static void free_session(void *argument)
{
    wb_tk_session *s = argument;
    wb_tk_close(s);
    free((void *)s->in_hand);
    free(s);
}

/* Of a shared one, which owns its instance. */
static void end_shared(wb_tk_session **shared)
{
    if (!*shared)
        return;
    wb_tk_instance *instance = (*shared)->instance;
    free_session(*shared);
    destroy(instance);
    *shared = NULL;
}

void wb_tk_end(wb_tk *tk)
{
    end_shared(&tk->receiver);
    end_shared(&tk->sender);
}

static wb_tk_session *make_session(wb_tk_instance *instance, uint32_t purpose, uint32_t prefetch)
{
    wb_tk *tk = instance->tk;
    wb_error error = { 0 };
    wb_tk_session *made = wb_alloc_zero(1, sizeof *made);
    made->tk = tk;
    made->instance = instance;
    made->purpose = purpose;
    made->prefetch = prefetch;
    int result = tk->ops->open(instance->transport, purpose, prefetch, &made->session, &error);
    if (wb_tk_is_ok(&tk->kit, result, &error, "open"))
        return made;
    made->session = NULL;
    free_session(made);
    return NULL;
}

wb_tk_session *wb_tk_open_for(wb_tk_instance *instance, uint32_t purpose, uint32_t prefetch)
{
    wb_tk *tk = instance->tk;
    if ((purpose & WB_SESSION_RECEIVE) && strcmp(instance->info.name, tk->queues[WB_TK_MAIN]) == 0) {
        /* what an earlier case left would be taken for this one's */
        if (!tk->is_swept && !wb_tk_receiver(&tk->kit))
            return NULL;
        end_shared(&tk->receiver);
    }
    wb_tk_session *made = make_session(instance, purpose, prefetch);
    if (made)
        wb_kit_defer(&tk->kit, free_session, made);
    return made;
}

wb_tk_session *wb_tk_open(wb_kit *kit, int queue, int mode, uint32_t prefetch)
{
    wb_tk_instance *instance = wb_tk_instance_make(kit, queue, mode);
    return instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, prefetch)
                    : NULL;
}

int wb_tk_skips_for_order(wb_kit *kit)
{
    if (!(kit->plugin->capabilities & WB_CAP_ORDER_PER_KEY))
        return 0;
    wb_kit_skip(kit, "who keeps the order per key holds messages back from other sessions");
    return 1;
}

void wb_tk_close(wb_tk_session *s)
{
    if (s->session)
        s->tk->ops->close(s->session);
    s->session = NULL;
    s->count = 0;
}

int wb_tk_reopen(wb_tk_session *s)
{
    wb_tk *tk = s->tk;
    wb_error error = { 0 };
    int64_t deadline = wb_tk_in(tk, tk->patience);
    int result;
    wb_tk_close(s);
    while ((result = tk->ops->open(s->instance->transport, s->purpose, s->prefetch, &s->session,
                                   &error)) != WB_OK) {
        s->session = NULL;
        if (result == WB_FATAL || wb_clock_monotonic() >= deadline)
            break;
        wb_clock_pause(RETRY_EVERY, NULL);
    }
    return wb_tk_is_ok(&tk->kit, result, &error, "open again");
}

/* ---- shared ones ----------------------------------------------------------------------- */

static wb_tk_session *open_shared(wb_kit *kit, uint32_t purpose)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_instance *instance = make_instance(kit, tk->queues[WB_TK_MAIN], tk->mode, NULL);
    wb_tk_session *made = instance ? make_session(instance, purpose, SHARED_PREFETCH) : NULL;
    if (instance && !made)
        destroy(instance);
    return made;
}

wb_tk_session *wb_tk_sender(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    if (!tk->sender)
        tk->sender = open_shared(kit, WB_SESSION_SEND);
    return tk->sender;
}

/* Take and acknowledge all there is: until a message comes that was sent now, and nothing
 * after it. */
static int take_all(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = tk->receiver;
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_error error = { 0 };
    int is_marked = !(kit->plugin->capabilities & WB_CAP_MODE_RECEIVE_ONLY);
    int64_t deadline = wb_tk_in(tk, tk->patience);
    if (!sender || !wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", SWEEP_MARKER, 1))
        return 0;
    for (;;) {
        int result = wb_tk_take(s, SHARED_PREFETCH, wb_tk_in(tk, WB_TK_QUIET), &error);
        if (!wb_tk_is_ok(kit, result, &error, "receive what an earlier case left"))
            return 0;
        if (s->count == 0 && is_marked)
            return 1;
        for (size_t i = 0; i < s->count; i++)
            is_marked |= wb_tk_number(s->in_hand[i]) == SWEEP_MARKER;
        if (!wb_tk_finish(s) ||
            !wb_kit_check(kit, wb_clock_monotonic() < deadline, "the queue does not get empty"))
            return 0;
    }
}

/* What is sent for it has no case's mark: if it stays it is nobody's. */
static int sweep(wb_kit *kit)
{
    const size_t number = kit->number;
    kit->number = 0;
    const int is_empty = take_all(kit);
    kit->number = number;
    return is_empty;
}

/* What fails here is the failure of whoever left it, a case that has failed or another run, and not of this case.
 * What turns up of it later has another mark. */
static void sweep_for_others(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    const int was_failed = kit->is_failed;
    tk->is_swept = 1;
    if (sweep(kit))
        return;
    kit->is_failed = was_failed;
    wb_kit_note(kit, "what an earlier case, or run, has left could not be cleared away");
    end_shared(&tk->receiver);
    tk->receiver = open_shared(kit, WB_SESSION_RECEIVE | WB_SESSION_SEND);
}

void wb_tk_sweep(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    if (!tk->receiver)
        tk->receiver = open_shared(kit, WB_SESSION_RECEIVE | WB_SESSION_SEND);
    if (tk->receiver && !sweep(kit))
        end_shared(&tk->receiver);
}

wb_tk_session *wb_tk_receiver(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    if (!tk->receiver)
        tk->receiver = open_shared(kit, WB_SESSION_RECEIVE | WB_SESSION_SEND);
    if (!tk->receiver || tk->is_swept)
        return tk->receiver;
    sweep_for_others(kit);
    return tk->receiver;
}

/* ---- two sessions ---------------------------------------------------------------------- */

/* Which keys go where is the transport's affair: many are tried until both get some. */
static int both_get_some(wb_kit *kit, wb_tk_session *pair[2], int64_t deadline, size_t *round)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    char key[24];
    size_t got[2] = { 0, 0 };
    for (; !got[0] || !got[1]; (*round)++) {
        if (wb_clock_monotonic() >= deadline) {
            wb_kit_skip(kit, "one of two sessions gets all messages");
            return 0;
        }
        (void)snprintf(key, sizeof key, "try-%zu", *round);
        if (!wb_tk_send_numbers(wb_tk_sender(kit), tk->queues[WB_TK_MAIN], key, 1, 1))
            return 0;
        for (size_t i = 0; i < 2; i++) {
            size_t who = (i + *round) % 2; /* by turns, or the first would get everything */
            int result = wb_tk_take(pair[who], 10, wb_tk_in(tk, RETRY_EVERY / 2), &error);
            got[who] += pair[who]->count;
            if (!wb_tk_is_ok(kit, result, &error, "receive") || !wb_tk_finish(pair[who]))
                return 0;
        }
    }
    return 1;
}

/* Where keys have their sessions, they move when one comes or goes. What one got before the
 * other came says nothing of what it gets from now on: it must be so for a while. */
static int both_keep_getting(wb_kit *kit, wb_tk_session *pair[2])
{
    const wb_tk *tk = wb_tk_of(kit);
    int64_t deadline = wb_tk_in(tk, tk->patience);
    size_t round = 0;
    for (int times = 0; times < SETTLED_AFTER; times++)
        if (!both_get_some(kit, pair, deadline, &round))
            return 0;
    return 1;
}

/* What was sent to find out is taken by whoever gets it. */
static int take_the_rest(wb_tk_session *pair[2])
{
    wb_error error = { 0 };
    for (int quiet = 0; quiet < 2;) {
        wb_tk_session *s = pair[quiet];
        int result = wb_tk_take(s, 100, wb_tk_in(s->tk, WB_TK_QUIET), &error);
        quiet += s->count == 0;
        if (!wb_tk_is_ok(&s->tk->kit, result, &error, "receive") || !wb_tk_finish(s))
            return 0;
    }
    return 1;
}

int wb_tk_open_pair(wb_kit *kit, uint32_t prefetch, wb_tk_session *ret_pair[2])
{
    wb_tk *tk = wb_tk_of(kit);
    if (!wb_tk_sender(kit))
        return 0;
    for (int i = 0; i < 2; i++)
        if (!(ret_pair[i] = wb_tk_open(kit, WB_TK_MAIN, tk->mode, prefetch)))
            return 0;
    if (!(kit->plugin->capabilities & WB_CAP_ORDER_PER_KEY))
        return 1;
    return both_keep_getting(kit, ret_pair) && take_the_rest(ret_pair);
}

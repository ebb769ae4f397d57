/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/negotiate/rules.h"

#include <string.h>

#define MODE_COUNT 4

static int offers(const wb_party *party, uint64_t capability)
{
    return party->name && (party->capabilities & capability);
}

static int offers_mode(const wb_negotiation_input *input, int32_t mode)
{
    /* the capability bits of modes are in the order of the modes */
    return offers(&input->transport, WB_CAP_MODE_NONE << mode);
}

static int is_on_one_resource(const wb_negotiation_input *input)
{
    const char *left = input->transport.shared_resource;
    const char *right = input->persistence.shared_resource;
    return left && right && strcmp(left, right) == 0;
}

int wb_rule_is_shared(const wb_negotiation_input *input)
{
    return offers(&input->persistence, WB_CAP_JOIN_TRANSPORT) && is_on_one_resource(input);
}

/* A store takes part in receive_only (the delayed message is stored, then the incoming one
 * is acknowledged: a crash in between repeats the store, under the same id) and in a
 * transaction it shares. In sends_atomic_with_receive it would be outside of the
 * transaction that was asked for. */
static int store_accepts_mode(const wb_negotiation_input *input)
{
    return input->mode == WB_MODE_NONE || input->mode == WB_MODE_RECEIVE_ONLY ||
           (input->mode == WB_MODE_TRANSACTION_SCOPE && wb_rule_is_shared(input));
}

static int may_delay_by(const wb_negotiation_input *input, int32_t by)
{
    return !input->delays_by_at.is_set || input->delays_by == by;
}

/* A send-only endpoint has no poller. */
int32_t wb_rule_delay_by(const wb_negotiation_input *input)
{
    if (offers(&input->transport, WB_CAP_DELAY) && may_delay_by(input, WB_DELAYS_BY_TRANSPORT))
        return WB_DELAYS_BY_TRANSPORT;
    if (offers(&input->persistence, WB_CAP_DELAY_STORE) && store_accepts_mode(input) &&
        !input->send_only && may_delay_by(input, WB_DELAYS_BY_STORE))
        return WB_DELAYS_BY_STORE;
    return WB_DELAYS_BY_NOBODY;
}

/* Who was asked for in the file cannot. */
static int delays_by(const wb_negotiation_input *input)
{
    return input->delays_by_at.is_set && wb_rule_delay_by(input) == WB_DELAYS_BY_NOBODY;
}

/* Those of the default are made where they can be. */
static int wants_delayed_retries(const wb_negotiation_input *input)
{
    return input->delayed_retries > 0 && input->delayed_retries_at.is_set;
}

static int delay_is_missing(const wb_negotiation_input *input)
{
    return wants_delayed_retries(input) && wb_rule_delay_by(input) == WB_DELAYS_BY_NOBODY;
}

static int mode_unsupported(const wb_negotiation_input *input)
{
    return !offers_mode(input, input->mode);
}

static int outbox_pointless(const wb_negotiation_input *input)
{
    return input->outbox && input->mode == WB_MODE_NONE;
}

static int outbox_mode(const wb_negotiation_input *input)
{
    return input->outbox && input->mode != WB_MODE_NONE && input->mode != WB_MODE_RECEIVE_ONLY;
}

static int outbox_without_persistence(const wb_negotiation_input *input)
{
    return input->outbox && !input->persistence.name;
}

static int outbox_unsupported(const wb_negotiation_input *input)
{
    return input->outbox && input->persistence.name && !offers(&input->persistence, WB_CAP_OUTBOX);
}

static int immediate_retries(const wb_negotiation_input *input)
{
    return input->mode == WB_MODE_NONE && input->immediate_retries > 0 &&
           input->immediate_retries_at.is_set;
}

static int delayed_retries(const wb_negotiation_input *input)
{
    return input->mode == WB_MODE_NONE && wants_delayed_retries(input);
}

static int delay_unavailable(const wb_negotiation_input *input)
{
    return delay_is_missing(input) && !input->delays_by_at.is_set &&
           !offers(&input->persistence, WB_CAP_DELAY_STORE);
}

static int delay_mode(const wb_negotiation_input *input)
{
    return delay_is_missing(input) && !input->delays_by_at.is_set &&
           offers(&input->persistence, WB_CAP_DELAY_STORE);
}

static int scope_not_shared(const wb_negotiation_input *input)
{
    return input->mode == WB_MODE_TRANSACTION_SCOPE && offers_mode(input, input->mode) &&
           !wb_rule_is_shared(input);
}

/* Two transactions at once on what has one writer: each message would wait for itself. */
static int atomic_shared(const wb_negotiation_input *input)
{
    return input->mode == WB_MODE_SENDS_ATOMIC && offers_mode(input, input->mode) &&
           input->persistence.name && is_on_one_resource(input);
}

/* Whoever has sessions may have nothing else: their control messages are handled all the same. */
static int no_handlers(const wb_negotiation_input *input)
{
    return input->handler_count == 0 && !input->session_at.is_set;
}

static int send_only_outbox(const wb_negotiation_input *input)
{
    return input->outbox && !input->processor_at.is_set;
}

static int session_without_outbox(const wb_negotiation_input *input)
{
    return input->session_at.is_set && !input->outbox;
}

static int session_unsupported(const wb_negotiation_input *input)
{
    return input->session_at.is_set && offers(&input->persistence, WB_CAP_OUTBOX) &&
           !offers(&input->persistence, WB_CAP_CLAIM_WITH_COMMIT);
}

static int session_processor(const wb_negotiation_input *input)
{
    return input->processor_at.is_set;
}

static int by_without_outbox(const wb_negotiation_input *input)
{
    return input->by_at.is_set && !input->outbox;
}

static int wants_positions(const wb_negotiation_input *input)
{
    return input->by_at.is_set && input->by_position;
}

static int position_transport(const wb_negotiation_input *input)
{
    return wants_positions(input) && !offers(&input->transport, WB_CAP_POSITION);
}

static int position_persistence(const wb_negotiation_input *input)
{
    return wants_positions(input) && input->persistence.name && !offers(&input->persistence, WB_CAP_POSITIONS);
}

/* The copy that is retried is another message, which may be sent twice: without ids it had two effects. */
static int position_retries(const wb_negotiation_input *input)
{
    return wants_positions(input) && !input->by_id && wants_delayed_retries(input);
}

static int persistence_unsuited(const wb_negotiation_input *input)
{
    return input->persistence.name && input->persistence.capabilities == WB_CAP_REMEMBER;
}

static int store_without_outbox(const wb_negotiation_input *input)
{
    return input->store.name && !input->outbox && !input->by_at.is_set;
}

static int store_unsuited(const wb_negotiation_input *input)
{
    return input->store.name && !offers(&input->store, WB_CAP_REMEMBER);
}

static int store_persistence(const wb_negotiation_input *input)
{
    return input->store.name && offers(&input->persistence, WB_CAP_OUTBOX) &&
           !offers(&input->persistence, WB_CAP_FORGET);
}

static int store_position(const wb_negotiation_input *input)
{
    return input->store.name && wants_positions(input) && !input->by_id;
}

/* The worker asks the store while its own transaction is open. */
static int store_shared(const wb_negotiation_input *input)
{
    const char *own = input->persistence.shared_resource, *stores = input->store.shared_resource;
    return input->store.name && own && stores && strcmp(own, stores) == 0;
}

static int queues_unsupported(const wb_negotiation_input *input)
{
    return input->queue_count > 1 && !offers(&input->transport, WB_CAP_QUEUES);
}

static int send_only_setting(const wb_negotiation_input *input)
{
    return input->input_setting_count > 0;
}

#define ANY (-1)

static const struct {
    int (*is_broken)(const wb_negotiation_input *input);
    int32_t send_only; /* the kind of endpoint it is about, or ANY */
} rules[WB_CONFLICT_KINDS] = {
    [WB_CONFLICT_MODE_UNSUPPORTED] = { mode_unsupported, 0 },
    [WB_CONFLICT_OUTBOX_POINTLESS] = { outbox_pointless, 0 },
    [WB_CONFLICT_OUTBOX_MODE] = { outbox_mode, 0 },
    [WB_CONFLICT_OUTBOX_WITHOUT_PERSISTENCE] = { outbox_without_persistence, ANY },
    [WB_CONFLICT_OUTBOX_UNSUPPORTED] = { outbox_unsupported, ANY },
    [WB_CONFLICT_IMMEDIATE_RETRIES] = { immediate_retries, 0 },
    [WB_CONFLICT_DELAYED_RETRIES] = { delayed_retries, 0 },
    [WB_CONFLICT_DELAY_UNAVAILABLE] = { delay_unavailable, 0 },
    [WB_CONFLICT_DELAY_MODE] = { delay_mode, 0 },
    [WB_CONFLICT_DELAYS_BY] = { delays_by, ANY },
    [WB_CONFLICT_SCOPE_NOT_SHARED] = { scope_not_shared, 0 },
    [WB_CONFLICT_ATOMIC_SHARED] = { atomic_shared, 0 },
    [WB_CONFLICT_NO_HANDLERS] = { no_handlers, 0 },
    [WB_CONFLICT_SEND_ONLY_OUTBOX] = { send_only_outbox, 1 },
    [WB_CONFLICT_SEND_ONLY_SETTING] = { send_only_setting, 1 },
    [WB_CONFLICT_SESSION_WITHOUT_OUTBOX] = { session_without_outbox, ANY },
    [WB_CONFLICT_SESSION_UNSUPPORTED] = { session_unsupported, ANY },
    [WB_CONFLICT_SESSION_PROCESSOR] = { session_processor, 0 },
    [WB_CONFLICT_BY_WITHOUT_OUTBOX] = { by_without_outbox, 0 },
    [WB_CONFLICT_POSITION_TRANSPORT] = { position_transport, 0 },
    [WB_CONFLICT_POSITION_PERSISTENCE] = { position_persistence, 0 },
    [WB_CONFLICT_POSITION_RETRIES] = { position_retries, 0 },
    [WB_CONFLICT_PERSISTENCE_UNSUITED] = { persistence_unsuited, ANY },
    [WB_CONFLICT_STORE_WITHOUT_OUTBOX] = { store_without_outbox, 0 },
    [WB_CONFLICT_STORE_UNSUITED] = { store_unsuited, 0 },
    [WB_CONFLICT_STORE_PERSISTENCE] = { store_persistence, 0 },
    [WB_CONFLICT_STORE_POSITION] = { store_position, 0 },
    [WB_CONFLICT_STORE_SHARED] = { store_shared, 0 },
    [WB_CONFLICT_QUEUES_UNSUPPORTED] = { queues_unsupported, 0 },
};

int wb_rule_is_broken(const wb_negotiation_input *input, int kind)
{
    return (rules[kind].send_only == ANY || (input->send_only != 0) == rules[kind].send_only) &&
           rules[kind].is_broken(input);
}

/* The offered modes (bit m) with which a rule holds. */
static uint32_t modes_that_keep(const wb_negotiation_input *input, int kind)
{
    wb_negotiation_input other = *input;
    uint32_t modes = 0;
    for (other.mode = 0; other.mode < MODE_COUNT; other.mode++)
        if (offers_mode(&other, other.mode) && !wb_rule_is_broken(&other, kind))
            modes |= 1u << other.mode;
    return modes;
}

/* A mode that trades this conflict for another is no remedy: as long as some are left,
 * only modes count with which every rule holds that any mode can satisfy. */
uint32_t wb_rule_modes(const wb_negotiation_input *input, int kind)
{
    uint32_t keeping = modes_that_keep(input, kind), sound = keeping;
    for (int other = 0; other < WB_CONFLICT_KINDS; other++) {
        uint32_t modes = modes_that_keep(input, other);
        if (modes)
            sound &= modes;
    }
    return sound ? sound : keeping;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/negotiate/rules.h"

#define MODES_TEXT_SIZE 128

static const char *const mode_names[] = { "none", "receive_only", "sends_atomic_with_receive",
                                          "transaction_scope" };

const char *wb_mode_name(int32_t mode)
{
    return mode >= 0 && mode < 4 ? mode_names[mode] : "unknown";
}

const char *wb_delay_name(int32_t delay_by)
{
    return delay_by == WB_DELAYS_BY_TRANSPORT ? "transport"
           : delay_by == WB_DELAYS_BY_STORE   ? "store"
                                          : "none";
}

const char *wb_conflict_name(int kind)
{
    static const char *const names[WB_CONFLICT_KINDS] = {
        "mode_unsupported",  "outbox_pointless",  "outbox_mode",
        "outbox_without_persistence", "outbox_unsupported", "immediate_retries_with_none",
        "delayed_retries_with_none", "delay_unavailable", "delay_mode",
        "scope_not_shared",  "no_handlers",       "send_only_outbox",
        "send_only_setting", "atomic_shared",     "delays_by",
        "session_without_outbox", "session_unsupported", "session_processor",
        "by_without_outbox", "position_transport", "position_persistence", "position_retries",
        "persistence_unsuited", "store_without_outbox", "store_unsuited", "store_persistence", "store_position", "store_shared",
        "queues_unsupported",
    };
    return kind >= 0 && kind < WB_CONFLICT_KINDS ? names[kind] : "unknown";
}

#define say(conflict, ...) (void)snprintf((conflict)->text, sizeof(conflict)->text, __VA_ARGS__)

/* `"none" or "receive_only"`; "" when no mode would do. */
static const char *list_modes(uint32_t modes, char text[MODES_TEXT_SIZE])
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t mode = 0; mode < 4; mode++)
        if (modes & (1u << mode))
            used += (size_t)snprintf(text + used, MODES_TEXT_SIZE - used, "%s\"%s\"",
                                     used ? " or " : "", wb_mode_name(mode));
    return text;
}

static void describe_mode(const wb_negotiation_input *input, wb_conflict *conflict)
{
    char modes[MODES_TEXT_SIZE];
    list_modes(conflict->modes, modes);
    conflict->at = input->mode_at;
    say(conflict, "transaction_mode = \"%s\"%s is not offered by transport \"%s\"; use %s",
        wb_mode_name(input->mode), input->mode_at.is_set ? "" : ", the default,",
        input->transport.name, *modes ? modes : "another transport");
}

static const char *other_mode(const wb_conflict *conflict, char text[MODES_TEXT_SIZE + 32])
{
    char modes[MODES_TEXT_SIZE];
    if (!conflict->modes)
        return "another transport";
    (void)snprintf(text, MODES_TEXT_SIZE + 32, "transaction_mode = %s",
                   list_modes(conflict->modes, modes));
    return text;
}

static void describe_outbox_mode(const wb_negotiation_input *input, wb_conflict *conflict)
{
    char mode[MODES_TEXT_SIZE + 32];
    int is_none = input->mode == WB_MODE_NONE;
    conflict->at = input->mode_at;
    say(conflict,
        "transaction_mode = \"%s\" does not go with the outbox enabled in line %d%s; use %s, or "
        "enabled = false in outbox",
        wb_mode_name(input->mode), input->outbox_at.line,
        is_none ? ", which is pointless here: a message acknowledged before it is handled never "
                  "comes back"
                : ", which needs the message to be acknowledged by itself, after the commit",
        other_mode(conflict, mode));
}

static void describe_outbox_persistence(const wb_negotiation_input *input, wb_conflict *conflict)
{
    conflict->at = input->outbox_at;
    if (!input->persistence.name)
        say(conflict, "outbox enabled = true needs a persistence and the endpoint has none; add "
                      "persistence = { plugin = \"NAME\"; ... };, or use enabled = false");
    else
        say(conflict,
            "outbox enabled = true is not offered by persistence \"%s\" (line %d); choose another "
            "persistence, or use enabled = false",
            input->persistence.name, input->persistence.at.line);
}

static void describe_retries(const wb_negotiation_input *input, wb_conflict *conflict)
{
    char mode[MODES_TEXT_SIZE + 32];
    int is_delayed = conflict->kind == WB_CONFLICT_DELAYED_RETRIES;
    const char *name = is_delayed ? "delayed_retries" : "immediate_retries";
    conflict->at = is_delayed ? input->delayed_retries_at : input->immediate_retries_at;
    say(conflict,
        "%s = %" PRId64 " cannot be honoured with transaction_mode = \"none\" (line %d): a message "
        "acknowledged before it is handled cannot be tried again; use %s = 0, or %s",
        name, is_delayed ? input->delayed_retries : input->immediate_retries, input->mode_at.line,
        name, other_mode(conflict, mode));
}

static void describe_delay(const wb_negotiation_input *input, wb_conflict *conflict)
{
    char modes[MODES_TEXT_SIZE + 32];
    conflict->at = input->delayed_retries_at;
    if (conflict->kind == WB_CONFLICT_DELAY_MODE)
        say(conflict,
            "delayed_retries = %" PRId64 ": persistence \"%s\" cannot store delayed messages as "
            "part of transaction_mode = \"%s\"; use delayed_retries = 0, or %s",
            input->delayed_retries, input->persistence.name, wb_mode_name(input->mode),
            other_mode(conflict, modes));
    else
        say(conflict,
            "delayed_retries = %" PRId64 ": transport \"%s\" cannot delay messages, and %s%s%s; "
            "use delayed_retries = 0, a transport that delays, or a persistence that stores "
            "delayed messages",
            input->delayed_retries, input->transport.name,
            input->persistence.name ? "persistence \"" : "there is no persistence",
            input->persistence.name ? input->persistence.name : "",
            input->persistence.name ? "\" cannot store them" : "");
}

/* Why the store cannot, and what would do. */
static void describe_store(const wb_negotiation_input *input, wb_conflict *conflict)
{
    char modes[MODES_TEXT_SIZE + 32];
    const wb_party *persistence = &input->persistence;
    if (!persistence->name)
        say(conflict, "delayed_delivery by = \"store\": there is no persistence to keep messages; use one "
                      "that stores delayed messages, or remove the line");
    else if (!(persistence->capabilities & WB_CAP_DELAY_STORE))
        say(conflict, "delayed_delivery by = \"store\": persistence \"%s\" cannot store delayed messages; "
                      "use another persistence, or remove the line", persistence->name);
    else if (input->send_only)
        say(conflict, "delayed_delivery by = \"store\": a send-only endpoint (line %d) has nobody to send "
                      "what is due; remove the line, or use send_only = false", input->send_only_at.line);
    else
        say(conflict, "delayed_delivery by = \"store\": persistence \"%s\" cannot store delayed messages as "
                      "part of transaction_mode = \"%s\"; remove the line, or use %s", persistence->name,
            wb_mode_name(input->mode), other_mode(conflict, modes));
}

static void describe_delays_by(const wb_negotiation_input *input, wb_conflict *conflict)
{
    conflict->at = input->delays_by_at;
    if (input->delays_by == WB_DELAYS_BY_STORE)
        describe_store(input, conflict);
    else
        say(conflict, "delayed_delivery by = \"transport\": transport \"%s\" cannot delay messages; use "
                      "by = \"store\" with a persistence that stores them, or remove the line",
            input->transport.name);
}

static void describe_scope(const wb_negotiation_input *input, wb_conflict *conflict)
{
    char mode[MODES_TEXT_SIZE + 32], why[320];
    const wb_party *transport = &input->transport, *persistence = &input->persistence;

    if (!persistence->name)
        (void)snprintf(why, sizeof why, "the endpoint has no persistence");
    else if (!(persistence->capabilities & WB_CAP_JOIN_TRANSPORT))
        (void)snprintf(why, sizeof why, "persistence \"%s\" cannot join a transport's transaction",
                       persistence->name);
    else
        (void)snprintf(why, sizeof why,
                       "transport \"%s\" is on \"%.80s\" and persistence \"%s\" on \"%.80s\"",
                       transport->name,
                       transport->shared_resource ? transport->shared_resource : "nothing shared",
                       persistence->name,
                       persistence->shared_resource ? persistence->shared_resource
                                                    : "nothing shared");
    conflict->at = input->mode_at;
    say(conflict,
        "transaction_mode = \"transaction_scope\" needs transport and persistence to share one "
        "transaction, but %s; put both on one resource, or use %s",
        why, other_mode(conflict, mode));
}

static void describe_shared(const wb_negotiation_input *input, wb_conflict *conflict)
{
    char mode[MODES_TEXT_SIZE + 32];
    conflict->at = input->mode_at;
    say(conflict,
        "transaction_mode = \"sends_atomic_with_receive\" keeps the transactions of transport "
        "\"%s\" and persistence \"%s\" apart, but both are on \"%.80s\", where one would wait for "
        "the other; put them on two, or use %s",
        input->transport.name, input->persistence.name, input->transport.shared_resource,
        other_mode(conflict, mode));
}

static void describe_send_only(const wb_negotiation_input *input, size_t index,
                               wb_conflict *conflict)
{
    if (conflict->kind == WB_CONFLICT_SEND_ONLY_OUTBOX) {
        conflict->at = input->outbox_at;
        say(conflict,
            "outbox enabled = true: a send-only endpoint (line %d) receives nothing, so its outbox "
            "is that of another, for transactional sessions; use session = { processor_endpoint = \"NAME\"; }, or "
            "enabled = false, or send_only = false",
            input->send_only_at.line);
        return;
    }
    conflict->at = input->input_settings[index].at;
    say(conflict,
        "\"%s\" is about an input queue, and a send-only endpoint (line %d) has none; remove it, "
        "or use send_only = false",
        input->input_settings[index].name, input->send_only_at.line);
}

static void describe_session(const wb_negotiation_input *input, wb_conflict *conflict)
{
    conflict->at = input->session_at;
    switch (conflict->kind) {
    case WB_CONFLICT_SESSION_WITHOUT_OUTBOX:
        say(conflict, "transactional sessions keep what they send in the outbox, and it is off; use "
                      "outbox = { enabled = true; }, or remove the group session");
        break;
    case WB_CONFLICT_SESSION_UNSUPPORTED:
        say(conflict, "persistence \"%s\" (line %d) cannot claim an id with a commit, which transactional sessions "
                      "need; use another persistence, or remove the group session",
            input->persistence.name, input->persistence.at.line);
        break;
    default:
        conflict->at = input->processor_at;
        say(conflict, "processor_endpoint is for a send-only endpoint; this one processes its own sessions: remove "
                      "the line, or use send_only = true");
        break;
    }
}

static void describe_positions(const wb_negotiation_input *input, wb_conflict *conflict)
{
    conflict->at = input->by_at;
    switch (conflict->kind) {
    case WB_CONFLICT_BY_WITHOUT_OUTBOX:
        say(conflict, "deduplication is the outbox's, and it is off; use outbox = { enabled = true; ... }, or remove the "
                      "group deduplication");
        break;
    case WB_CONFLICT_POSITION_TRANSPORT:
        say(conflict, "by = [\"position\"] is not offered by transport \"%s\" (line %d), whose messages have no position "
                      "that only grows; use by = [\"id\"]",
            input->transport.name, input->transport.at.line);
        break;
    case WB_CONFLICT_POSITION_PERSISTENCE:
        say(conflict, "by = [\"position\"] is not offered by persistence \"%s\" (line %d); use by = [\"id\"], or another "
                      "persistence",
            input->persistence.name, input->persistence.at.line);
        break;
    default:
        conflict->at = input->delayed_retries_at;
        say(conflict, "delayed_retries = %lld: the copy that is retried is a new message, which may be sent twice, and "
                      "by = [\"position\"] (line %d) does not know it again; use by = [\"id\", \"position\"], or "
                      "delayed_retries = 0",
            (long long)input->delayed_retries, input->by_at.line);
        break;
    }
}

static void describe_apart(const wb_negotiation_input *input, wb_conflict *conflict)
{
    conflict->at = input->store.at;
    switch (conflict->kind) {
    case WB_CONFLICT_PERSISTENCE_UNSUITED:
        conflict->at = input->persistence.at;
        say(conflict, "persistence \"%s\" can only remember ids: use it in outbox.deduplication.store, and another one here",
            input->persistence.name);
        break;
    case WB_CONFLICT_STORE_WITHOUT_OUTBOX:
        say(conflict, "deduplication is the outbox's, and it is off; use outbox = { enabled = true; ... }, or remove the "
                      "group store");
        break;
    case WB_CONFLICT_STORE_UNSUITED:
        say(conflict, "persistence \"%s\" cannot remember ids for another one; use another one in store, or remove the group",
            input->store.name);
        break;
    case WB_CONFLICT_STORE_PERSISTENCE:
        say(conflict, "persistence \"%s\" (line %d) cannot hand its ids to a store; use another persistence, or remove the "
                      "group store",
            input->persistence.name, input->persistence.at.line);
        break;
    case WB_CONFLICT_STORE_SHARED:
        say(conflict, "the store is on \"%.80s\", as the persistence is (line %d), where one would wait for the other for "
                      "ever; use a file of its own",
            input->store.shared_resource, input->persistence.at.line);
        break;
    default:
        say(conflict, "by = [\"position\"] (line %d) keeps no ids that a store could remember; use by = [\"id\", "
                      "\"position\"], or remove the group store",
            input->by_at.line);
        break;
    }
}

static void describe_queues(const wb_negotiation_input *input, wb_conflict *conflict)
{
    conflict->at = input->queues_at;
    say(conflict, "failures.from names %zu queues, and transport \"%s\" (line %d) receives from one; write another endpoint "
                  "for each queue, or use a transport that declares \"queues\"",
        input->queue_count, input->transport.name, input->transport.at.line);
}

void wb_rule_describe(const wb_negotiation_input *input, size_t index, wb_conflict *conflict)
{
    switch (conflict->kind) {
    case WB_CONFLICT_MODE_UNSUPPORTED: describe_mode(input, conflict); break;
    case WB_CONFLICT_OUTBOX_POINTLESS:
    case WB_CONFLICT_OUTBOX_MODE: describe_outbox_mode(input, conflict); break;
    case WB_CONFLICT_OUTBOX_WITHOUT_PERSISTENCE:
    case WB_CONFLICT_OUTBOX_UNSUPPORTED: describe_outbox_persistence(input, conflict); break;
    case WB_CONFLICT_IMMEDIATE_RETRIES:
    case WB_CONFLICT_DELAYED_RETRIES: describe_retries(input, conflict); break;
    case WB_CONFLICT_DELAY_UNAVAILABLE:
    case WB_CONFLICT_DELAY_MODE: describe_delay(input, conflict); break;
    case WB_CONFLICT_DELAYS_BY: describe_delays_by(input, conflict); break;
    case WB_CONFLICT_SCOPE_NOT_SHARED: describe_scope(input, conflict); break;
    case WB_CONFLICT_ATOMIC_SHARED: describe_shared(input, conflict); break;
    case WB_CONFLICT_BY_WITHOUT_OUTBOX:
    case WB_CONFLICT_POSITION_TRANSPORT:
    case WB_CONFLICT_POSITION_PERSISTENCE:
    case WB_CONFLICT_POSITION_RETRIES: describe_positions(input, conflict); break;
    case WB_CONFLICT_PERSISTENCE_UNSUITED:
    case WB_CONFLICT_STORE_WITHOUT_OUTBOX:
    case WB_CONFLICT_STORE_UNSUITED:
    case WB_CONFLICT_STORE_PERSISTENCE:
    case WB_CONFLICT_STORE_SHARED:
    case WB_CONFLICT_STORE_POSITION: describe_apart(input, conflict); break;
    case WB_CONFLICT_QUEUES_UNSUPPORTED: describe_queues(input, conflict); break;
    case WB_CONFLICT_NO_HANDLERS:
        conflict->at = input->at;
        say(conflict, "the endpoint has no handlers; list modules, handlers = [\"FILE.so\"];, or "
                      "use send_only = true, or session = { }; if it is there for a program's sessions");
        break;
    case WB_CONFLICT_SESSION_WITHOUT_OUTBOX:
    case WB_CONFLICT_SESSION_UNSUPPORTED:
    case WB_CONFLICT_SESSION_PROCESSOR: describe_session(input, conflict); break;
    default: describe_send_only(input, index, conflict); break;
    }
}

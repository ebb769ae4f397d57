/* SPDX-License-Identifier: Apache-2.0
 *
 * Negotiation: what an endpoint's configuration asks for, intersected with what its
 * plugins declare. A pure function: no file, no connection, no state.
 *
 * Either there is a plan, or there are conflicts, and then all of them.
 */
#ifndef WB_NEGOTIATE_NEGOTIATE_H
#define WB_NEGOTIATE_NEGOTIATE_H

#include <stddef.h>
#include <waybill/sys/plugin.h>

#include "core/config/problems.h"

/** A plugin at the table. */
typedef struct wb_party {
    const char *name; /* NULL: the endpoint has none */
    uint64_t capabilities; /* that are known here */
    const char *shared_resource; /* what it could share a transaction on, or NULL */
    wb_conf_origin at;
} wb_party;

/** A setting that only makes sense with an input queue and stands in the file. */
typedef struct wb_input_setting {
    const char *name;
    wb_conf_origin at;
} wb_input_setting;

/** An origin's is_set says whether the user asked for the value or it is the default. */
typedef struct wb_negotiation_input {
    wb_conf_origin at; /* the endpoint */
    int32_t mode;      /* WB_MODE_x */
    wb_conf_origin mode_at;
    int32_t outbox;
    wb_conf_origin outbox_at;
    int32_t by_id; /* how messages that came before are known; counts if its origin is set */
    int32_t by_position;
    wb_conf_origin by_at;
    int64_t immediate_retries;
    wb_conf_origin immediate_retries_at;
    int64_t delayed_retries;
    wb_conf_origin delayed_retries_at;
    int32_t delays_by; /* WB_DELAYS_BY_x that is asked for; counts if its origin is set */
    wb_conf_origin delays_by_at;
    int32_t send_only;
    wb_conf_origin send_only_at;
    wb_conf_origin session_at;   /* of the group session; counts if it is set */
    wb_conf_origin processor_at; /* of its processor_endpoint, the same */
    size_t handler_count; /* modules listed */
    size_t queue_count;   /* it receives from: more than one are further error queues */
    wb_conf_origin queues_at;
    const wb_input_setting *input_settings;
    size_t input_setting_count;
    wb_party transport;
    wb_party persistence;
    wb_party store; /* where ids are kept when they are done with */
} wb_negotiation_input;

/** What an endpoint will do. */
typedef struct wb_plan {
    int32_t mode; /* WB_MODE_x; of a send-only endpoint WB_MODE_NONE, or WB_MODE_RECEIVE_ONLY with outbox */
    int32_t outbox; /* of a send-only endpoint: that of its processor */
    int32_t by_id;       /* with outbox: messages that came before are known by their ids */
    int32_t by_position; /* and by their positions */
    int32_t sessions; /* 1: transactional sessions can be opened */
    int64_t immediate_retries;
    int64_t delayed_retries;
    int32_t delay_by; /* WB_DELAYS_BY_x: who could delay, also when nothing asks for it yet */
    int32_t joined;   /* 1: transport and persistence share one transaction */
    int32_t send_only;
} wb_plan;

/* Kinds of conflict, one for each rule. */
#define WB_CONFLICT_MODE_UNSUPPORTED 0
#define WB_CONFLICT_OUTBOX_POINTLESS 1
#define WB_CONFLICT_OUTBOX_MODE 2
#define WB_CONFLICT_OUTBOX_WITHOUT_PERSISTENCE 3
#define WB_CONFLICT_OUTBOX_UNSUPPORTED 4
#define WB_CONFLICT_IMMEDIATE_RETRIES 5
#define WB_CONFLICT_DELAYED_RETRIES 6
#define WB_CONFLICT_DELAY_UNAVAILABLE 7
#define WB_CONFLICT_DELAY_MODE 8
#define WB_CONFLICT_SCOPE_NOT_SHARED 9
#define WB_CONFLICT_NO_HANDLERS 10
#define WB_CONFLICT_SEND_ONLY_OUTBOX 11
#define WB_CONFLICT_SEND_ONLY_SETTING 12
#define WB_CONFLICT_ATOMIC_SHARED 13
#define WB_CONFLICT_DELAYS_BY 14
#define WB_CONFLICT_SESSION_WITHOUT_OUTBOX 15
#define WB_CONFLICT_SESSION_UNSUPPORTED 16
#define WB_CONFLICT_SESSION_PROCESSOR 17
#define WB_CONFLICT_BY_WITHOUT_OUTBOX 18
#define WB_CONFLICT_POSITION_TRANSPORT 19
#define WB_CONFLICT_POSITION_PERSISTENCE 20
#define WB_CONFLICT_POSITION_RETRIES 21
#define WB_CONFLICT_PERSISTENCE_UNSUITED 22
#define WB_CONFLICT_STORE_WITHOUT_OUTBOX 23
#define WB_CONFLICT_STORE_UNSUITED 24
#define WB_CONFLICT_STORE_PERSISTENCE 25
#define WB_CONFLICT_STORE_POSITION 26
#define WB_CONFLICT_STORE_SHARED 27
#define WB_CONFLICT_QUEUES_UNSUPPORTED 28
#define WB_CONFLICT_KINDS 29

typedef struct wb_conflict {
    int kind;
    wb_conf_origin at;
    uint32_t modes; /* bit m: mode m would work instead */
    char text[768]; /* what was asked, who cannot, which values would work */
} wb_conflict;

#define WB_CONFLICTS_MAX 48

typedef struct wb_negotiation {
    wb_plan plan; /* meaningful when there is no conflict */
    wb_conflict conflicts[WB_CONFLICTS_MAX];
    size_t conflict_count;
} wb_negotiation;

/** @return WB_OK with the plan, or WB_FATAL with the conflicts. */
int wb_negotiate(const wb_negotiation_input *input, wb_negotiation *ret_negotiation);

/** "receive_only", as in the configuration. */
const char *wb_mode_name(int32_t mode);
/** "outbox_mode", for tests and machines. */
const char *wb_conflict_name(int kind);
/** "none", "transport", "store". */
const char *wb_delay_name(int32_t delay_by);

#endif

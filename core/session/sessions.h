/* SPDX-License-Identifier: Apache-2.0
 *
 * The sessions of an endpoint in one process: a pool of places (a connection to the database, and one
 * to the broker where control messages are sent) and one dispatcher for what all of them commit.
 *
 *   open -> business data on the place's transaction -> commit: control message, then claim, store
 *   and commit in one round trip -> dispatcher: send, mark
 */
#ifndef WB_SESSION_SESSIONS_H
#define WB_SESSION_SESSIONS_H

#include <waybill/session.h>

#include "core/pipeline/pipeline.h"

typedef struct wb_sessions wb_sessions;

typedef struct wb_sessions_policy {
    int sends_control; /* a control message before each commit */
    const char *processor; /* whose queue gets it */
    int64_t commit_duration; /* ns */
    int64_t delay_increment; /* ns */
    unsigned connections;
} wb_sessions_policy;

/** Start the dispatcher. Pipeline and policy's strings live longer.
 *  @return WB_OK, or WB_FATAL: no thread. */
int wb_sessions_start(wb_pipeline *pipeline, const wb_sessions_policy *policy, wb_sessions **ret_sessions,
                      wb_error *error);
/** No session is open. Waits `patience` ns for what was committed to leave. NULL is allowed. */
void wb_sessions_stop(wb_sessions *sessions, int64_t patience);

/** The largest body that the endpoint takes, bytes. */
int64_t wb_sessions_body_max(const wb_sessions *sessions);
/** The database's time, as its answer to who opened a session last has it (wb_pipeline_now()). */
int64_t wb_sessions_now(const wb_sessions *sessions);

/** As in waybill/session.h. Memory that is out is reported by whoever calls these (core/library), and closes
 *  *ret_session then. */
int wb_sessions_open(wb_sessions *sessions, const wb_session_options *options, wb_session **ret_session,
                     wb_error *error);
int wb_sessions_commit(wb_session *session, wb_error *error);
/** A complete operation, which is copied, beside what wb_send() makes. Before the commit. */
void wb_sessions_add(wb_session *session, const wb_operation *operation);

#endif

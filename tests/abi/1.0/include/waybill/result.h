/* SPDX-License-Identifier: Apache-2.0
 *
 * Result classes: what every fallible call of Waybill returns.
 *
 * A caller branches on the class, never on a text or a native code. The classes
 * are the same for a handler's return value, a transport's and a persistence's.
 */
#ifndef WAYBILL_RESULT_H
#define WAYBILL_RESULT_H

/** Done, and as durable as the callee promises. */
#define WB_OK 0
/** Nothing happened; the same call may succeed later (lock timeout, busy).
 *  From a handler: roll back and try this message again. */
#define WB_RETRY 1
/** The transaction must be rolled back and run again from its start
 *  (deadlock, serialization failure). */
#define WB_ABORT 2
/** This message or operation can never succeed (too large, no such destination).
 *  From a handler: straight to the error queue, no retries; where it ran behind others in
 *  one transaction it is asked once more, alone, so that no neighbour has a part in it. */
#define WB_REJECT 3
/** The outcome is unknown (connection lost during COMMIT, confirm not received).
 *  Never retried blindly: the deduplication record decides. */
#define WB_IN_DOUBT 4
/** The connection is gone and with it the open transaction; nothing committed. */
#define WB_NOT_CONNECTED 5
/** The instance cannot be used; retrying will not help until somebody acts. */
#define WB_FATAL 6

/** What a handler returns for "do not retry": the name users look for. */
#define WB_UNRECOVERABLE WB_REJECT

/* Causes: what is behind a failure. Plugins say them (sys/plugin.h), programs read them in a
 * wb_failure (session.h), and they decide the exit code of `waybill` while it starts. */
#define WB_CAUSE_OTHER 0
#define WB_CAUSE_UNREACHABLE 1 /* nobody listens, or the connection broke: exit code 69 */
#define WB_CAUSE_REFUSED 2     /* credentials or privileges: exit code 77 */
#define WB_CAUSE_MISSING 3     /* table, queue, database absent: run `waybill install`; exit code 72 */
#define WB_CAUSE_MISMATCH 4    /* exists with other arguments or another version: exit code 72 */
#define WB_CAUSE_CONFIG 5      /* the option's value is wrong: exit code 78 */
#define WB_CAUSE_UNROUTABLE 6  /* no such destination */
#define WB_CAUSE_TOO_LARGE 7   /* over a limit */
#define WB_CAUSE_SERVER 8      /* the server cannot now, whoever asks: exit code 75 */
#define WB_CAUSE_SENDING 9     /* of a transport's send() alone: only sending failed; exit code 69 */
#define WB_CAUSE_DUPLICATE 10  /* of a session: its id was committed before */
#define WB_CAUSE_EXPIRED 11    /* of a session: its commit came too late, its id is closed */

/* Log levels of wb_log() and of the host's log function. */
#define WB_LOG_ERROR 0
#define WB_LOG_WARNING 1
#define WB_LOG_INFO 2
#define WB_LOG_DEBUG 3

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The control message of a transactional session: NServiceBus's, byte for byte, so that endpoints
 * of .NET process ours and we theirs. Its id is the session's, its body is empty, and its headers
 * say how long the session's commit may still take. It leaves before that commit. Who receives it
 * and finds no record of the session sends it to itself again, later each time, until the time is
 * over.
 */
#ifndef WB_MESSAGE_SESSION_CONTROL_H
#define WB_MESSAGE_SESSION_CONTROL_H

#include "core/message/operations.h"

/** The longest of its times, as of the configuration's. */
#define WB_SESSION_SPAN_MAX (24 * 3600 * INT64_C(1000000000))

typedef struct wb_session_control {
    int64_t remaining; /* ns: how long the commit may still take, when the message is due */
    int64_t increment; /* ns: its last delay; in the first message what the next is twice of */
    uint32_t attempt;  /* from 1 */
    uint64_t replaces; /* the record that closed the session's id when it was opened, and may be replaced by its commit;
                        * 0: none. In a header of our own, where there is one */
} wb_session_control;

/** @return 1; 0: the headers are not those of such a message; -1: they are, and cannot be read. */
int wb_session_control_read(const wb_header *headers, size_t count, wb_session_control *ret_control);

/** What the next message says. It is to be delayed by its `increment`: twice the one before, or what
 *  is left. @return 0: nothing is left, and the commit comes too late. */
int wb_session_control_next(const wb_session_control *control, wb_session_control *ret_next);

/** What tells it from others of its id that are delayed beside it. */
uint32_t wb_session_control_key(const wb_session_control *control);

/** The control message of the session `id`. What it points to must live as long as the list. */
wb_operation *wb_session_control_operation(const char *destination, const char *id, size_t id_size,
                                           const wb_session_control *control, wb_arena *arena,
                                           wb_operation_list *list);

/** The same from one that was received: other headers of it stay. */
wb_operation *wb_session_control_again(const char *destination, const wb_incoming *incoming,
                                       const wb_session_control *control, wb_arena *arena,
                                       wb_operation_list *list);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A failed message that is changed before it goes back. As ServiceControl has it, it is another message
 * then: with an id of its own, and a header that names the failure it was made of.
 */
#ifndef WB_FAILURES_EDIT_H
#define WB_FAILURES_EDIT_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/message/operations.h"

/** What is changed. Headers are set in their order; one that is there is replaced, with all of its name. */
typedef struct wb_failed_edit {
    int has_body;
    const void *body;
    size_t body_size;
    const wb_header *headers;
    size_t header_count;
    const wb_header *removed; /* by their names */
    size_t removed_count;
} wb_failed_edit;

/** @return WB_OK, or WB_REJECT: a header that only the platform sets, is no text or is too long. */
int wb_failed_edit_check(const wb_failed_edit *edit, wb_error *error);

/** Change what goes back, which has the headers of its failure no more; what it points to then lives in the arena or in
 *  `edit`. `key` is that of the failure. */
void wb_failed_edit_apply(const wb_failed_edit *edit, const char *key, size_t key_size, wb_operation *operation,
                          wb_arena *arena);

/** What a failure and a retry add to a message's headers, and no message of a user's has; with what counts its attempts. */
int wb_failed_is_of_failure(const wb_header *header);

#endif

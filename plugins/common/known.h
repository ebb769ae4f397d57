/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of destinations that were found to exist. Not forgetting one costs a message to nowhere,
 * forgetting one costs a question: whatever is short, memory or room, they are forgotten.
 */
#ifndef WB_COMMON_KNOWN_H
#define WB_COMMON_KNOWN_H

#include <stddef.h>
#include <stdint.h>

/** Replies may go to very many; beyond so many all are forgotten. */
#define WB_COMMON_KNOWN_MAX 4096
#define WB_COMMON_FOR_EVER INT64_MAX

typedef struct wb_common_name {
    char *name;
    int64_t until; /* on the caller's clock */
} wb_common_name;

/** All zero is empty. */
typedef struct wb_common_known {
    wb_common_name *names; /* ascending */
    size_t count, capacity;
} wb_common_known;

/** Whether a name was added, and its time has not come. */
int wb_common_known_has(const wb_common_known *known, const char *name, int64_t now);
/** Remember one until then; out of memory it is not. */
void wb_common_known_add(wb_common_known *known, const char *name, int64_t until);
void wb_common_known_drop(wb_common_known *known, const char *name);
/** Forget everything. Also frees. */
void wb_common_known_clear(wb_common_known *known);

#endif

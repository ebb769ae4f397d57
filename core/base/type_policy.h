/* SPDX-License-Identifier: Apache-2.0
 *
 * What an endpoint's recoverability makes different for one type of message.
 */
#ifndef WB_BASE_TYPE_POLICY_H
#define WB_BASE_TYPE_POLICY_H

#include <stdint.h>

typedef struct wb_type_policy {
    const char *type;          /* without assemblies, as handlers name it */
    int64_t immediate_retries; /* -1: as for other types */
    int64_t delayed_retries;   /* the same */
    const char *error_queue;   /* NULL: as for other types */
} wb_type_policy;

#endif

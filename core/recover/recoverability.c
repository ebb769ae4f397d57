/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/recover/recoverability.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/message/header_names.h"

void wb_failure_set(wb_failure *failure, const char *kind, const char *reason, int counts)
{
    char *old = failure->reason; /* `reason` may be this one */
    failure->kind = kind;
    failure->reason = wb_strdup(reason && *reason ? reason : "no reason given");
    free(old);
    failure->attempts += counts ? 1 : 0;
}

void wb_failure_clear(wb_failure *failure)
{
    free(failure->reason);
    memset(failure, 0, sizeof *failure);
}

int wb_recover_is_exhausted(const wb_recoverability *policy, const wb_failure *failure)
{
    return failure->attempts > policy->immediate_retries;
}

int wb_recover_is_faulty(const wb_recoverability *policy, const wb_failure *failure)
{
    unsigned forgiven = policy->immediate_retries < WB_FAULTS_MIN ? WB_FAULTS_MIN
                                                                  : policy->immediate_retries;
    return failure->faults > forgiven;
}

static int starts_with(const wb_header *header, const char *prefix)
{
    size_t size = strlen(prefix);
    return header->name_size >= size && memcmp(header->name, prefix, size) == 0;
}

static int is_name(const wb_header *header, const char *name)
{
    return header->name_size == strlen(name) && starts_with(header, name);
}

int wb_recover_is_failure_header(const wb_header *header)
{
    static const char *const names[] = {
        WB_HEADER_RETRIES,           WB_HEADER_FL_RETRIES,        WB_HEADER_FAILED_QUEUE,
        WB_HEADER_TIME_OF_FAILURE,   WB_HEADER_PROCESSING_MACHINE, WB_HEADER_PROCESSING_ENDPOINT,
        WB_HEADER_HOST_ID,           WB_HEADER_HOST_NAME,         WB_HEADER_TRIMMED,
        WB_HEADER_NOT_KEPT,
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_name(header, names[i]))
            return 1;
    return starts_with(header, WB_HEADER_EXCEPTION_PREFIX);
}

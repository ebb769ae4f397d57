/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/health.h"

#include <stddef.h>

/* The most serious one is told. */
static const char *find_trouble(const wb_health_facts *facts)
{
    if (facts->gave_up)
        return "workers gave up";
    if (facts->broker_is_away && facts->database_is_away)
        return "the broker and the database are away";
    if (facts->broker_is_away)
        return "the broker is away";
    if (facts->database_is_away)
        return "the database is away";
    if (facts->store_is_away)
        return "the deduplication store is away";
    if (facts->stuck)
        return "a handler takes too long";
    if (facts->is_limited)
        return "attempts fail in a row and are made one at a time";
    if (facts->troubled)
        return "a worker cannot go on and tries again";
    return *facts->late ? facts->late : NULL;
}

int wb_health_judge(const wb_health_facts *facts, const char **ret_reason)
{
    const char *reason = NULL;
    int state = WB_HEALTH_RUNNING;
    if (facts->is_stopping)
        state = WB_HEALTH_STOPPING;
    else if (facts->is_starting)
        state = WB_HEALTH_STARTING;
    else if ((reason = find_trouble(facts)) != NULL)
        state = WB_HEALTH_DEGRADED;
    if (ret_reason)
        *ret_reason = reason;
    return state;
}

const char *wb_health_name(int state)
{
    static const char *const names[] = { "running", "degraded", "starting", "stopping" };
    return names[state];
}

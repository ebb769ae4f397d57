/* SPDX-License-Identifier: Apache-2.0
 *
 * A circuit breaker: something that is tried time and again fails. The first failure arms it; the
 * first success disarms it, and so does a time without failures. When it has been armed for its time it
 * opens: a critical error, which
 * is one line, and where the configuration says so stops the endpoint.
 */
#ifndef WB_PIPELINE_BREAKER_H
#define WB_PIPELINE_BREAKER_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/base/error.h"

struct wb_pipeline;

/** Any thread. */
typedef struct wb_breaker {
    const char *what;      /* that fails: "storing delayed messages" */
    int64_t after;         /* ns: armed for so long it opens */
    _Atomic int64_t armed; /* since when, monotonic; 0: it is not */
    _Atomic int64_t failed; /* when it failed last */
    atomic_int is_open;
} wb_breaker;

void wb_breaker_succeeded(wb_breaker *breaker, const struct wb_pipeline *pipeline);
void wb_breaker_failed(wb_breaker *breaker, struct wb_pipeline *pipeline, const wb_error *error);
/** As if nothing had failed: the endpoint starts again. */
void wb_breaker_reset(wb_breaker *breaker);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * From spans to the body of a request: OTLP 1.0 in JSON
 * (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding), attributes by the semantic conventions of messaging.
 */
#ifndef WB_OTLP_ENCODE_H
#define WB_OTLP_ENCODE_H

#include "plugins/observer/otlp/otlp-queue.h"

/** Who the spans are of. */
typedef struct wb_otlp_resource {
    const char *service_name;
    const char *endpoint; /* also its queue */
    const char *host_name;
} wb_otlp_resource;

/** @return the text, to be freed with free(); NULL: there is no memory. */
char *wb_otlp_encode(const wb_otlp_resource *resource, const wb_otlp_chain *chain);

/** What a receiver answered that took the request: how many spans it refused, and why (`reason`, "" when it does not say).
 *  What is no such answer refuses none. */
uint64_t wb_otlp_rejected(const char *answer, size_t size, char *reason, size_t reason_size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that takes spans from the queue and posts them, in batches; and what an operator is told of it.
 */
#ifndef WB_OTLP_EXPORTER_H
#define WB_OTLP_EXPORTER_H

#include "plugins/observer/otlp/otlp-encode.h"
#include "plugins/observer/otlp/otlp-post.h"

typedef struct wb_otlp_exporter {
    const wb_host *host;
    const wb_otlp_config *config;
    wb_otlp_resource resource;
    wb_otlp_queue queue;
    wb_otlp_poster poster;
    pthread_t thread;
    int is_away;     /* a line said that nobody takes spans */
    uint64_t lost;   /* and no line has told of these yet */
    int64_t told;    /* when the last one did */
    int64_t pause;   /* before the next try */
} wb_otlp_exporter;

/** Start the thread. `host`, `config` and `resource` are set. @return WB_OK, or WB_FATAL and nothing is to be stopped. */
int wb_otlp_exporter_start(wb_otlp_exporter *exporter, wb_error *error);
/** Post what waits, until `deadline` at most, and end the thread. */
void wb_otlp_exporter_stop(wb_otlp_exporter *exporter, int64_t deadline);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * One request to the receiver, and what becomes of it. A connection is kept from one to the next.
 */
#ifndef WB_OTLP_POST_H
#define WB_OTLP_POST_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "plugins/observer/otlp/otlp-options.h"

#define WB_OTLP_REASON_SIZE 400

typedef struct wb_otlp_poster {
    const wb_otlp_config *config;
    int64_t (*now)(void);
    CURL *easy;
    CURLM *multi;
    struct curl_slist *headers;
    _Atomic int64_t deadline; /* of whatever runs; 0: its time-out alone */
    char *answer;             /* of the last request */
    size_t answer_size;
    char failure[CURL_ERROR_SIZE];
} wb_otlp_poster;

typedef enum {
    WB_OTLP_TAKEN,
    WB_OTLP_LATER,  /* the same again, after `pause` */
    WB_OTLP_REFUSED /* never */
} wb_otlp_verdict;

typedef struct wb_otlp_outcome {
    wb_otlp_verdict verdict;
    int64_t pause;     /* ns that the receiver asks for; 0: it does not */
    uint64_t rejected; /* of those it took */
    char reason[WB_OTLP_REASON_SIZE];
} wb_otlp_outcome;

/** @return WB_OK, or WB_FATAL: there is no memory. The poster is freed in either case. */
int wb_otlp_poster_init(wb_otlp_poster *poster, const wb_otlp_config *config, int64_t (*now)(void));
void wb_otlp_poster_free(wb_otlp_poster *poster);

/** Send a body. The exporter's thread. */
void wb_otlp_post(wb_otlp_poster *poster, const char *body, wb_otlp_outcome *ret_outcome);
/** What runs, and what comes, is to have ended then. Any thread. */
void wb_otlp_poster_hurry(wb_otlp_poster *poster, int64_t deadline);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * One client of librdkafka: its log lines, what it says of its connections, and an end
 * that does not hang.
 *
 * Ending one can take for ever (a name that resolves slowly, a bug about partitions that
 * were lost). So it happens on a thread of its own, and when that takes too long it is left
 * alone with all it uses: that is why this structure is allocated apart.
 */
#ifndef WB_KAFKA_CLIENT_H
#define WB_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>

#include "plugins/transport/kafka/kafka-map.h"
#include "plugins/transport/kafka/kafka-transport.h"

typedef struct wb_kafka_client {
    rd_kafka_t *rk;
    wb_transport *transport;
    void *owner; /* of the callbacks */
    pthread_mutex_t lock; /* guards what follows: librdkafka logs on any thread */
    const wb_host *host;  /* NULL: abandoned, nobody to tell */
    rd_kafka_resp_err_t last_code; /* of a connection; 0 when nothing was said */
    char last_text[300];
    int all_down;
    int asking; /* so many questions wait for an answer */
    int64_t oversize, oversize_limit; /* of an answer that could not be received; 0: none */
} wb_kafka_client;

/** Start a client with `conf`, whose callbacks other than those for errors and log lines
 *  are set; it is used up. Their opaque is the client.
 *  @return NULL with `failure` filled. */
wb_kafka_client *wb_kafka_client_start(wb_transport *transport, rd_kafka_type_t type,
                                       rd_kafka_conf_t *conf, void *owner, wb_kafka_failure *failure);

/** Whether there could be a client with `conf`, which is used up: one is made that knows no broker,
 *  and destroyed. Logs nothing. @return 0 with librdkafka's reason in `text`. */
int wb_kafka_client_try(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *text, size_t size);

/** End it; all its objects but the handle must be gone, and a consumer be closed. NULL
 *  does nothing. Never takes longer than connect_timeout. */
void wb_kafka_client_end(wb_kafka_client *client);

/** What it said last of its connections becomes the reason of a failure. */
int wb_kafka_client_failure(wb_kafka_client *client, rd_kafka_resp_err_t code, const char *doing,
                            wb_kafka_failure *failure);

/** Ask for the metadata of one topic, or of the brokers alone (NULL), without making it.
 *  Fails as soon as it is known that nobody answers. To be released with
 *  rd_kafka_metadata_destroy(). @return WB_OK, or failure->result. */
int wb_kafka_client_ask(wb_kafka_client *client, const char *topic, int64_t deadline,
                        const struct rd_kafka_metadata **ret_metadata, wb_kafka_failure *failure);

/** The size of the last answer that was larger than can be received, once, or 0; and the
 *  limit. */
int64_t wb_kafka_client_take_oversize(wb_kafka_client *client, int64_t *ret_limit);

/** Milliseconds until a deadline, at least 0. */
int wb_kafka_until(const wb_transport *transport, int64_t deadline);

/** A condition that is waited for on the clock of deadlines, and so many milliseconds from now. */
void wb_kafka_condition_init(pthread_cond_t *condition);
struct timespec wb_kafka_condition_time(int milliseconds);

/** A name of its own for a session, or for all of a process. @return the slot, or -1 with `failure`
 *  filled. */
int wb_kafka_name_take(wb_transport *transport, char ret_name[WB_KAFKA_NAME_SIZE],
                       wb_kafka_failure *failure);

/** To be called before wb_kafka_failure_map() where the session of a slot may have been fenced:
 *  opening it again is all that is needed, unless that happens again and again. */
void wb_kafka_failure_map_fence(wb_kafka_failure *failure, wb_transport *transport, int slot,
                                rd_kafka_resp_err_t code, const char *doing);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What broke, in the host's words: librdkafka's error codes become a result class, a cause
 * and a text. Pure.
 *
 * Whose fault a code is stands in one table (kafka-map.c): the server's passes, an
 * operation's never does, the configuration's waits for somebody who acts. WB_RETRY is not
 * among the answers: what can be tried again is tried again by librdkafka, within a window.
 */
#ifndef WB_KAFKA_MAP_H
#define WB_KAFKA_MAP_H

#include <librdkafka/rdkafka.h>
#include <waybill/sys/plugin.h>

#include "plugins/common/failure.h"

/** Why a client is of no more use. The first reason is the one. */
typedef wb_common_failure wb_kafka_failure;
#define wb_kafka_failure_set wb_common_failure_note
#define wb_kafka_failure_report wb_common_failure_report

/** Note an error code. `doing` completes "could not ..."; `detail` may be NULL. */
int wb_kafka_failure_map(wb_kafka_failure *failure, rd_kafka_resp_err_t code, const char *doing,
                         const char *detail);

/* Flags of a code. */
/** Ends a consumer's session; the others pass by themselves. */
#define WB_KAFKA_ENDS_CONSUMER 1u
/** A request is refused whole for one of its messages: the others are innocent. */
#define WB_KAFKA_SHARED 2u
/** Somebody else came under our name. */
#define WB_KAFKA_FENCED 4u

/** One row of the table. */
typedef struct wb_kafka_code {
    rd_kafka_resp_err_t code;
    int session;  /* WB_x, of a call that is about the session itself */
    int delivery; /* WB_x, of an operation that is known not to be in the log */
    int cause;    /* WB_CAUSE_x */
    unsigned flags;
} wb_kafka_code;

/** The row of a code; of one that nobody foresaw, it is what breaks a session. */
wb_kafka_code wb_kafka_map_code(rd_kafka_resp_err_t code);

/** The cause that belongs to a code. */
int wb_kafka_map_cause(rd_kafka_resp_err_t code);

/** Somebody else came under our name. */
int wb_kafka_map_is_fenced(rd_kafka_resp_err_t code);

/** An error of a consumer that ends its session; the others pass by themselves. */
int wb_kafka_map_ends_consumer(rd_kafka_resp_err_t code);

/** A request was refused with this code, and it need not be for the message that is reported. */
int wb_kafka_map_is_shared(rd_kafka_resp_err_t code);

/** What librdkafka says of a connection (code and text) cannot pass by itself: a certificate or a
 *  login that is not trusted. */
int wb_kafka_map_is_refusal(rd_kafka_resp_err_t code, const char *text);

/** What is done with a topic. */
#define WB_KAFKA_READ 0
#define WB_KAFKA_WRITE 1
#define WB_KAFKA_CREATE 2
#define WB_KAFKA_PUBLISH 3 /* written, and made when it is not there */
/** What an operator grants when that is not authorized: the end of a sentence, empty where that
 *  is not the reason. */
const char *wb_kafka_map_remedy(rd_kafka_resp_err_t code, int operation);

/** The result of an operation whose delivery failed: WB_REJECT can never succeed,
 *  WB_NOT_CONNECTED and WB_FATAL are known not to be in the log, WB_IN_DOUBT may be. */
int wb_kafka_map_delivery(rd_kafka_resp_err_t code, rd_kafka_msg_status_t status);

#endif

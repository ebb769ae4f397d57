/* SPDX-License-Identifier: Apache-2.0
 *
 * What the broker refused inside a transaction. A refusal there ends the transaction, with all
 * that is innocent in it, and the host runs it again; it is remembered, so that the same
 * operation is refused the next time without being sent. Pure.
 */
#ifndef WB_KAFKA_REFUSALS_H
#define WB_KAFKA_REFUSALS_H

#include <librdkafka/rdkafka.h>
#include <waybill/sys/transport.h>

#define WB_KAFKA_REFUSALS 64

/** What tells one operation for a topic from others: its id and sizes, or its bytes. */
uint64_t wb_kafka_refusals_name(const char *topic, const wb_operation *operation);

/** The newest ones (a ring). */
typedef struct wb_kafka_refusals {
    struct {
        uint64_t operation;
        rd_kafka_resp_err_t code;
        int64_t until;
    } known[WB_KAFKA_REFUSALS];
    size_t next;
    int64_t until; /* of the one that is remembered longest */
} wb_kafka_refusals;

void wb_kafka_refusals_add(wb_kafka_refusals *refusals, const char *topic,
                           const wb_operation *operation, rd_kafka_resp_err_t code, int64_t now);
/** @return why it was refused, or RD_KAFKA_RESP_ERR_NO_ERROR. */
rd_kafka_resp_err_t wb_kafka_refusals_find(const wb_kafka_refusals *refusals, const char *topic,
                                           const wb_operation *operation, int64_t now);

#endif

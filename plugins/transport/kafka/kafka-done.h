/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of events that are in some of their topics and were refused by another: when such an event
 * is sent again, they are not. The newest ones, of all sessions of a process: it is sent again by
 * whichever worker has it, or the sweeper. Any thread.
 */
#ifndef WB_KAFKA_DONE_H
#define WB_KAFKA_DONE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define WB_KAFKA_DONE 1024

typedef struct wb_kafka_done {
    pthread_mutex_t lock;
    uint64_t records[WB_KAFKA_DONE]; /* wb_kafka_refusals_name(), and 0 for none; a ring */
    size_t next;
    size_t count; /* not 0 */
} wb_kafka_done;

void wb_kafka_done_init(wb_kafka_done *done);
void wb_kafka_done_destroy(wb_kafka_done *done);

int wb_kafka_done_has(wb_kafka_done *done, uint64_t record);
void wb_kafka_done_add(wb_kafka_done *done, uint64_t record);
/** All of the event is sent. */
void wb_kafka_done_drop(wb_kafka_done *done, uint64_t record);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose turn it is to hold a message over the limits: one at a time in the whole process, in
 * the order of asking, so that no stream of them keeps others from ever being read.
 */
#ifndef WB_KAFKA_LARGE_H
#define WB_KAFKA_LARGE_H

#include <pthread.h>

/** Of whoever may ask, zeroed; in the line at most once. */
typedef struct wb_kafka_large_place {
    struct wb_kafka_large_place *next;
    int in_line;
} wb_kafka_large_place;

/** The first in the line has the turn. */
typedef struct wb_kafka_large_line {
    pthread_mutex_t lock;
    wb_kafka_large_place *first, *last;
} wb_kafka_large_line;

void wb_kafka_large_init(wb_kafka_large_line *line);
void wb_kafka_large_destroy(wb_kafka_large_line *line);

/** Stand in the line, if not there yet. @return whether it is our turn. */
int wb_kafka_large_ask(wb_kafka_large_line *line, wb_kafka_large_place *place);
/** Leave the line, also with the turn. */
void wb_kafka_large_leave(wb_kafka_large_line *line, wb_kafka_large_place *place);

#endif

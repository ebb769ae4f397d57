/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-large.h"

#include <stddef.h>

void wb_kafka_large_init(wb_kafka_large_line *line)
{
    line->first = line->last = NULL;
    (void)pthread_mutex_init(&line->lock, NULL);
}

void wb_kafka_large_destroy(wb_kafka_large_line *line)
{
    (void)pthread_mutex_destroy(&line->lock);
}

static void append(wb_kafka_large_line *line, wb_kafka_large_place *place)
{
    place->in_line = 1;
    place->next = NULL;
    if (line->last)
        line->last->next = place;
    else
        line->first = place;
    line->last = place;
}

int wb_kafka_large_ask(wb_kafka_large_line *line, wb_kafka_large_place *place)
{
    (void)pthread_mutex_lock(&line->lock);
    if (!place->in_line)
        append(line, place);
    int answer = line->first == place;
    (void)pthread_mutex_unlock(&line->lock);
    return answer;
}

static void take_out(wb_kafka_large_line *line, wb_kafka_large_place *place)
{
    wb_kafka_large_place *before = NULL;
    for (wb_kafka_large_place *at = line->first; at != place; at = at->next)
        before = at;
    if (before)
        before->next = place->next;
    else
        line->first = place->next;
    if (line->last == place)
        line->last = before;
    place->in_line = 0;
}

void wb_kafka_large_leave(wb_kafka_large_line *line, wb_kafka_large_place *place)
{
    (void)pthread_mutex_lock(&line->lock);
    if (place->in_line)
        take_out(line, place);
    (void)pthread_mutex_unlock(&line->lock);
}

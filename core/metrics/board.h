/* SPDX-License-Identifier: Apache-2.0
 *
 * A board: what the main thread sees of all endpoints, put up a few times a second for who looks from another thread. So whoever
 * looks, however often and however slowly, keeps nobody: the endpoints may end, their workers be joined and started anew, and all
 * that both sides ever wait for is a copy.
 */
#ifndef WB_METRICS_BOARD_H
#define WB_METRICS_BOARD_H

#include <pthread.h>

#include "core/metrics/metrics.h"

typedef struct wb_board {
    pthread_mutex_t lock; /* guards the rest */
    wb_observed *endpoints;
    size_t count;
    int64_t started, seen; /* wall clock */
    int64_t put;           /* monotonic: it was renewed last; 0: never yet */
} wb_board;

/** `endpoints`: what is constant of each, and its state; copied. */
void wb_board_init(wb_board *board, const wb_observed *endpoints, size_t count);
void wb_board_free(wb_board *board);
/** Put up the vital signs of the endpoint with that number. The main thread, from when it looks at endpoints that run: who still
 *  starts them may wait long for a server. */
void wb_board_put(wb_board *board, size_t number, const wb_vitals *vitals);
/** All of it, to be freed by free(overview->endpoints). Any thread. */
void wb_board_read(wb_board *board, wb_overview *ret_overview);

#endif

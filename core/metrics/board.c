/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/metrics/board.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"

void wb_board_init(wb_board *board, const wb_observed *endpoints, size_t count)
{
    board->endpoints = wb_alloc((count + 1) * sizeof *board->endpoints);
    memcpy(board->endpoints, endpoints, count * sizeof *endpoints);
    board->count = count;
    board->started = board->seen = wb_clock_wall();
    board->put = 0;
    pthread_mutex_init(&board->lock, NULL);
}

void wb_board_free(wb_board *board)
{
    free(board->endpoints);
    pthread_mutex_destroy(&board->lock);
}

void wb_board_put(wb_board *board, size_t number, const wb_vitals *vitals)
{
    const int64_t now = wb_clock_wall(), put = wb_clock_monotonic();
    pthread_mutex_lock(&board->lock);
    board->endpoints[number].vitals = *vitals;
    board->seen = now;
    board->put = put;
    pthread_mutex_unlock(&board->lock);
}

void wb_board_read(wb_board *board, wb_overview *ret_overview)
{
    wb_observed *copy = wb_alloc((board->count + 1) * sizeof *copy);
    pthread_mutex_lock(&board->lock);
    memcpy(copy, board->endpoints, board->count * sizeof *copy);
    *ret_overview = (wb_overview){ copy, board->count, board->started, board->seen,
                                         board->put ? wb_clock_monotonic() - board->put : 0 };
    pthread_mutex_unlock(&board->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#ifdef HAVE_LIBMICROHTTPD

#include "core/http/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/metrics/status.h"

#define BLOCK 4096

typedef struct {
    wb_streams *owner;
    struct MHD_Connection *connection; /* NULL: a free place */
    int is_waiting;  /* for the next second */
    uint64_t told;   /* the last second that it was told of */
    int64_t until;   /* monotonic */
    wb_buffer text;  /* of the event that is being sent */
    size_t sent;     /* of it */
} stream;

struct wb_streams {
    wb_board *board;
    pthread_mutex_t lock; /* guards the rest */
    stream all[WB_STREAMS];
    uint64_t second;
    int64_t looked;
    int is_over;
};

wb_streams *wb_streams_make(wb_board *board)
{
    wb_streams *streams = wb_alloc_zero(1, sizeof *streams);
    pthread_mutex_init(&streams->lock, NULL);
    streams->board = board;
    streams->second = 1; /* the first event comes at once */
    return streams;
}

void wb_streams_free(wb_streams *streams)
{
    if (!streams)
        return;
    pthread_mutex_destroy(&streams->lock);
    free(streams);
}

/* ---- one ---------------------------------------------------------------------------------- */

static void make_event(stream *one)
{
    wb_overview overview;
    wb_board_read(one->owner->board, &overview);
    json_t *status = wb_status_json(&overview);
    char *text = json_dumps(status, JSON_COMPACT | JSON_ENSURE_ASCII);
    free((void *)(uintptr_t)overview.endpoints);
    one->text.size = one->sent = 0;
    wb_buffer_put(&one->text, "retry: 1000\ndata: ", 18);
    wb_buffer_put(&one->text, text ? text : "{}", text ? strlen(text) : 2);
    wb_buffer_put(&one->text, "\n\n", 2);
    free(text);
    json_decref(status);
}

static ssize_t copy(stream *one, char *to, size_t max)
{
    const size_t rest = one->text.size - one->sent, size = rest < max ? rest : max;
    memcpy(to, one->text.data + one->sent, size);
    one->sent += size;
    return (ssize_t)size;
}

/* The library calls it whenever the socket takes more: who has nothing to say has to put the connection aside. */
static ssize_t read_stream(void *argument, uint64_t position, char *to, size_t max)
{
    stream *one = argument;
    wb_streams *streams = one->owner;
    ssize_t size = MHD_CONTENT_READER_END_OF_STREAM;
    (void)position;
    pthread_mutex_lock(&streams->lock);
    const int has_text = one->sent < one->text.size;
    if (!streams->is_over && (has_text || wb_clock_monotonic() < one->until)) {
        if (!has_text && one->told != streams->second) {
            one->told = streams->second;
            make_event(one);
        }
        size = copy(one, to, max);
        if (!size) {
            one->is_waiting = 1;
            MHD_suspend_connection(one->connection);
        }
    }
    pthread_mutex_unlock(&streams->lock);
    return size;
}

static void close_stream(void *argument)
{
    stream *one = argument;
    wb_streams *streams = one->owner;
    pthread_mutex_lock(&streams->lock);
    wb_buffer_free(&one->text);
    *one = (stream){ .owner = streams };
    pthread_mutex_unlock(&streams->lock);
}

/* ---- all ---------------------------------------------------------------------------------- */

static stream *take_place(wb_streams *streams, struct MHD_Connection *connection)
{
    stream *found = NULL;
    pthread_mutex_lock(&streams->lock);
    for (size_t i = 0; i < WB_STREAMS && !found && !streams->is_over; i++)
        if (!streams->all[i].connection)
            found = &streams->all[i];
    if (found)
        *found = (stream){ .owner = streams,
                           .connection = connection,
                           .until = wb_clock_monotonic() + wb_test_period(WB_STREAM_SECONDS * WB_SECOND) };
    pthread_mutex_unlock(&streams->lock);
    return found;
}

struct MHD_Response *wb_streams_open(wb_streams *streams, struct MHD_Connection *connection)
{
    stream *one = take_place(streams, connection);
    struct MHD_Response *response =
        one ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, one, close_stream) : NULL;
    if (one && !response)
        close_stream(one);
    return response;
}

static void wake_all(wb_streams *streams)
{
    for (size_t i = 0; i < WB_STREAMS; i++) {
        if (streams->all[i].is_waiting)
            MHD_resume_connection(streams->all[i].connection);
        streams->all[i].is_waiting = 0;
    }
}

void wb_streams_look(wb_streams *streams, int64_t now)
{
    pthread_mutex_lock(&streams->lock);
    if (now - streams->looked >= WB_STREAM_EVERY) {
        streams->looked = now;
        streams->second++;
        wake_all(streams);
    }
    pthread_mutex_unlock(&streams->lock);
}

void wb_streams_end(wb_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    streams->is_over = 1;
    wake_all(streams);
    pthread_mutex_unlock(&streams->lock);
}

#endif

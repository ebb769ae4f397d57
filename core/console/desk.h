/* SPDX-License-Identifier: Apache-2.0
 *
 * The desk: one thread that asks servers what the console shows, so that neither the listener, which answers how the process is,
 * nor a worker ever waits for that. What is asked stands in a short line; what does not fit into it is refused.
 */
#ifndef WB_CONSOLE_DESK_H
#define WB_CONSOLE_DESK_H

#include <stddef.h>
#include <stdint.h>

#include "core/console/answer.h"

/** So many stand in line. */
#define WB_DESK_LINE 16

/** Something that can be asked for. */
typedef struct wb_deed {
    const char *path; /* "/api/failures" */
    int changes;      /* something: it is asked for by POST, of who may */
    /** Fill the answer, which is all zero. `given` has what was given with it: strings by their names; of
     *  one that changes something what was sent, and "who" that was. On the desk's thread. */
    void (*run)(void *owner, const json_t *given, wb_answer *answer);
    size_t sent_max; /* bytes that may be sent for it, where those are more than WB_HTTP_BODY_MAX; 0: not so many */
} wb_deed;

/** All of them. */
typedef struct wb_deeds {
    const wb_deed *all;
    size_t count;
    void *owner;
} wb_deeds;

/** One that somebody waits for. */
typedef struct wb_errand {
    struct wb_errand *next;
    const wb_deed *deed;
    json_t *given;
    wb_answer answer; /* once it is done */
    void (*tell)(void *argument); /* that it is; on any thread, the desk's lock being held */
    void *argument;
} wb_errand;

/** `given` is copied. */
wb_errand *wb_errand_make(const wb_deed *deed, const json_t *given);
/** It is done, or was never given. NULL is allowed. */
void wb_errand_free(wb_errand *errand);

typedef struct wb_desk wb_desk;

/** @return NULL: there is no thread to be had. */
wb_desk *wb_desk_open(const wb_deeds *deeds);
/** Whether the next that is given is taken. Who gives is one thread. */
int wb_desk_has_room(wb_desk *desk);
/** It is the caller's again when it is told to be done. */
void wb_desk_give(wb_desk *desk, wb_errand *errand);
/** Nothing more is done: who waits is told so at once. */
void wb_desk_close(wb_desk *desk);
/** Wait so long (ns) for its thread to end, and free it: it was closed. @return 0: it waits for a server, and may do so for long; all that it uses has to
 *  stay. NULL is allowed. */
int wb_desk_end(wb_desk *desk, int64_t patience);

#endif

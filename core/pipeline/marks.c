/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/marks.h"

#include <stdlib.h>
#include <string.h>

void wb_marks_add(wb_worker *w, wb_mark mark)
{
    if (w->mark_count == w->mark_max) {
        w->mark_max = w->mark_max ? w->mark_max * 2 : 16;
        w->marks = wb_realloc(w->marks, w->mark_max * sizeof *w->marks);
    }
    if (mark.remaining) {
        void *copy = wb_alloc(mark.remaining_size);
        memcpy(copy, mark.remaining, mark.remaining_size);
        mark.remaining = copy;
    }
    w->marks[w->mark_count++] = mark;
}

void wb_marks_add_message(wb_worker *w, const wb_incoming *incoming)
{
    if (w->settled_count == w->settled_max) {
        w->settled_max = w->settled_max ? w->settled_max * 2 : 256;
        w->settled = wb_realloc(w->settled, w->settled_max * sizeof *w->settled);
    }
    w->settled[w->settled_count++] = incoming;
}

void wb_marks_clear(wb_worker *w)
{
    for (size_t i = 0; i < w->mark_count; i++)
        free((void *)(uintptr_t)w->marks[i].remaining);
    w->mark_count = 0;
}

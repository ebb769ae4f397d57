/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/repeats.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/patience.h"

#define WINDOW WB_SECOND

static wb_repeated *find(wb_repeats *repeats, const char *text, size_t size)
{
    for (size_t i = 0; i < WB_REPEATS_MAX; i++)
        if (repeats->texts[i].size == size && memcmp(repeats->texts[i].text, text, size) == 0)
            return &repeats->texts[i];
    return NULL;
}

/* Of the places without a count, the one that was begun first. @return NULL: all have one. */
static wb_repeated *find_place(wb_repeats *repeats)
{
    wb_repeated *oldest = NULL;
    for (size_t i = 0; i < WB_REPEATS_MAX; i++) {
        wb_repeated *at = &repeats->texts[i];
        if (!at->size)
            return at;
        if (!at->more && (!oldest || at->began < oldest->began))
            oldest = at;
    }
    return oldest;
}

static void begin(wb_repeated *at, int64_t now)
{
    at->until = now + WINDOW;
    at->written = 0;
}

static int admit(wb_repeats *repeats, int level, const char *text, size_t size, int64_t now)
{
    wb_repeated *at = find(repeats, text, size);
    if (!at && (at = find_place(repeats)) != NULL) {
        memcpy(at->text, text, size);
        at->size = size;
        at->level = level;
        at->began = ++repeats->begun;
        begin(at, now);
    }
    if (!at)
        return 1;
    if (now >= at->until && !at->more)
        begin(at, now);
    if (at->written < WB_REPEATS_BURST) {
        at->written++;
        return 1;
    }
    if (!at->more++ && at->until < atomic_load(&repeats->due))
        atomic_store(&repeats->due, at->until);
    return 0;
}

int wb_repeats_admit(wb_repeats *repeats, int level, const char *text, size_t size, int64_t now)
{
    if (!size || size > WB_REPEATS_TEXT_MAX)
        return 1;
    if (!wb_log_lock(&repeats->lock))
        return 1;
    int is_admitted = admit(repeats, level, text, size, now);
    pthread_mutex_unlock(&repeats->lock);
    return is_admitted;
}

static wb_repeated *find_counted(wb_repeats *repeats)
{
    wb_repeated *first = NULL;
    for (size_t i = 0; i < WB_REPEATS_MAX; i++)
        if (repeats->texts[i].more && (!first || repeats->texts[i].until < first->until))
            first = &repeats->texts[i];
    return first;
}

/* What goes on coming is only counted from here on: its `written` stays. */
static int take(wb_repeats *repeats, int64_t now, wb_repeated *ret_text)
{
    wb_repeated *first = find_counted(repeats);
    int is_due = first && first->until <= now;
    if (is_due) {
        *ret_text = *first;
        first->more = 0;
        first->until = (now == WB_NEVER ? first->until : now) + WINDOW;
        first = find_counted(repeats);
    }
    atomic_store(&repeats->due, first ? first->until : WB_NEVER);
    return is_due;
}

int wb_repeats_take(wb_repeats *repeats, int64_t now, wb_repeated *ret_text)
{
    if (atomic_load_explicit(&repeats->due, memory_order_relaxed) > now ||
        atomic_load_explicit(&repeats->due, memory_order_relaxed) == WB_NEVER)
        return 0;
    if (!wb_log_lock(&repeats->lock))
        return 0;
    int is_due = take(repeats, now, ret_text);
    pthread_mutex_unlock(&repeats->lock);
    return is_due;
}

void wb_repeats_forget(wb_repeats *repeats)
{
    pthread_mutex_init(&repeats->lock, NULL);
    for (size_t i = 0; i < WB_REPEATS_MAX; i++)
        repeats->texts[i].size = repeats->texts[i].more = 0;
    atomic_store(&repeats->due, WB_NEVER);
}

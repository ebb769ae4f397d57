/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/delayed/silence.h"

#include <string.h>

#include "core/base/clock.h"

/* As long as what was sent in vain stays taken, so that both are tried together. */
#define PAUSE (30 * WB_SECOND)

wb_silence *wb_silences_find(wb_silences *silences, const wb_delayed_key *key)
{
    for (size_t i = 0; i < silences->count; i++) {
        wb_silence *one = &silences->of[i];
        if (one->size == key->destination_size && memcmp(one->destination, key->destination, one->size) == 0)
            return one;
    }
    return NULL;
}

void wb_silences_start(wb_silences *silences)
{
    for (size_t i = 0; i < silences->count; i++)
        silences->of[i].is_probed = 0;
}

int wb_silences_hold(wb_silences *silences, const wb_delayed_key *key, int64_t now)
{
    wb_silence *one = wb_silences_find(silences, key);
    if (!one)
        return 0;
    if (one->is_probed || now < one->until)
        return 1;
    one->is_probed = 1;
    return 0;
}

static wb_silence *add(wb_silences *silences, const wb_delayed_key *key)
{
    if (key->destination_size > sizeof silences->of[0].destination)
        return NULL;
    if (silences->count == WB_SILENCES_MAX)
        memmove(&silences->of[0], &silences->of[1], --silences->count * sizeof silences->of[0]);
    wb_silence *one = &silences->of[silences->count++];
    *one = (wb_silence){ .size = key->destination_size };
    memcpy(one->destination, key->destination, one->size);
    return one;
}

int wb_silences_note(wb_silences *silences, const wb_delayed_key *key, int64_t now)
{
    wb_silence *known = wb_silences_find(silences, key), *one = known ? known : add(silences, key);
    if (one)
        one->until = now + PAUSE;
    return !known;
}

int wb_silences_forget(wb_silences *silences, const wb_delayed_key *key)
{
    wb_silence *one = wb_silences_find(silences, key);
    if (!one)
        return 0;
    memmove(one, one + 1, (size_t)(&silences->of[--silences->count] - one) * sizeof *one);
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Destinations that confirm nothing: a queue without a majority, a partition without a leader. A
 * window waits for what it sent, so a lot with a message for one of them keeps all that is due for
 * others. They are left alone for a while, and then one message tries.
 */
#ifndef WB_DELAYED_SILENCE_H
#define WB_DELAYED_SILENCE_H

#include <waybill/sys/delayed.h>

/** Destinations that are remembered; of more the one that was silent first is forgotten. */
#define WB_SILENCES_MAX 32

typedef struct wb_silence {
    char destination[WB_DELAYED_DESTINATION_MAX];
    size_t size;
    int64_t until; /* monotonic: nothing is sent to it before */
    int is_probed; /* the message that tries is found */
} wb_silence;

typedef struct wb_silences {
    wb_silence of[WB_SILENCES_MAX];
    size_t count;
} wb_silences;

/** A lot begins: what became of the last one's tries is noted, or will not be. */
void wb_silences_start(wb_silences *silences);
/** Whether the message is to wait. When the time is over, the first of a lot may go. */
int wb_silences_hold(wb_silences *silences, const wb_delayed_key *key, int64_t now);
/** Its destination confirmed nothing. @return 1 if that is news. */
int wb_silences_note(wb_silences *silences, const wb_delayed_key *key, int64_t now);
/** It answered. @return 1 if that is news. */
int wb_silences_forget(wb_silences *silences, const wb_delayed_key *key);
/** What is known of its destination, until the next call; NULL: nothing. */
wb_silence *wb_silences_find(wb_silences *silences, const wb_delayed_key *key);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys whose id was found closed, and the number of the record that closes it: a session that is
 * given such a key again replaces that record with its own claim. At no time is the id nobody's, so that
 * what was closed stays without effect, however late it comes. What is forgotten is told once more.
 */
#ifndef WB_SESSION_CLOSED_KEYS_H
#define WB_SESSION_CLOSED_KEYS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wb_closed_keys {
    pthread_mutex_t lock;
    struct wb_closed_key *keys; /* NULL: none was noted yet */
} wb_closed_keys;

void wb_closed_keys_init(wb_closed_keys *keys);
void wb_closed_keys_free(wb_closed_keys *keys);

/** Somebody was told that it is closed by the record of that number. Any thread. Without memory nothing is noted. */
void wb_closed_keys_note(wb_closed_keys *keys, const void *id, size_t size, uint64_t number);
/** @return the number of the record, 0: none is known. Any thread. */
uint64_t wb_closed_keys_find(wb_closed_keys *keys, const void *id, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport, which takes from its queue what it hands out and no more, made to read
 * ahead as brokers do: as many as the prefetch allows wait in the session. With no fault it
 * passes the kit; a broken transport around it names one.
 */
#ifndef WB_TESTS_AHEAD_H
#define WB_TESTS_AHEAD_H

#include "tests/conformance/broken.h"

typedef enum ahead_fault {
    AHEAD_RELEASE_LOSES_ONE, /* neither given back nor handed out before the session ends */
    AHEAD_STOP_GIVES_BACK,   /* what waits, instead of handing it out */
    AHEAD_HAS_NO_BOUND,      /* in bytes */
    AHEAD_NEVER_SHRINKS,     /* the prefetch, which it follows otherwise */
    AHEAD_HAS_LITTLE_ROOM,   /* which is no fault: for ten in hand; and what was asked for before the prefetch shrank comes */
} ahead_fault;

/** Exchange the operations for those that read ahead. */
void ahead_use(wb_transport_ops *ops, ahead_fault fault);

#endif

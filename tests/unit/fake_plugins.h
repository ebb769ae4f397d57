/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport and a persistence in the test's own process, for endpoints without servers: a
 * queue that is always empty, tables that are never asked. What calls do wrong is told while
 * they run.
 */
#ifndef WB_TESTS_UNIT_FAKE_PLUGINS_H
#define WB_TESTS_UNIT_FAKE_PLUGINS_H

#include <stdatomic.h>

#include "core/endpoint/setup.h"

/* Calls of the transport, as bits of a mask. */
#define FAKE_CREATE 1u
#define FAKE_INSTALL 2u
#define FAKE_VERIFY 4u
#define FAKE_LIMITS 8u
#define FAKE_RECEIVE 16u
#define FAKE_DESTROY 32u
#define FAKE_OPEN 64u
/* And one of the persistence. */
#define FAKE_TABLES 128u
#define FAKE_DEPTH 256u

typedef struct fake {
    atomic_uint fatal;  /* calls that fail with WB_FATAL */
    atomic_int cause;   /* and this cause; 0: WB_CAUSE_MISSING */
    atomic_uint hangs;  /* calls that do not return while their bit is set */
    atomic_int is_full; /* receive() says WB_RETRY, after so many milliseconds */
    atomic_int waiting; /* what depth() answers */
    /* receive() is concerned in this session only, counted as they are opened; 0: in all. */
    atomic_int fatal_in, hangs_in;
    uint32_t limit;     /* what limits() answers */
    uint32_t limit_flags;
    atomic_int storage_hangs; /* opening a storage session does not return while it is set */

    atomic_int instances; /* that were created and not destroyed, of both kinds */
    atomic_int sessions;  /* that were opened and not closed, of both kinds */
    atomic_int opened;    /* transport sessions that receive, ever */
    atomic_int received;  /* looks of receive() for messages, ever: they go on while it waits */
    atomic_int storage_opened;
    atomic_int cleaned;   /* steps of the clean-up, ever */

    wb_endpoint_config config;
} fake;

/** An endpoint on fake plugins with these workers; with outbox it has a persistence and a
 *  housekeeper whose rounds follow each other at once. Times out after 30 s when stopped. */
void fake_setup(fake *f, wb_endpoint_setup *setup, const char *name, unsigned workers, int outbox);

/** Start of threads, once the program is linked with --wrap=pthread_create: so many from now
 *  on succeed, then each fails with EAGAIN; negative: all succeed. */
extern atomic_int fake_threads;
/** The same for as long as what it points to is not 0, where it is shared with another process; NULL: nothing is. */
extern const atomic_int *fake_no_threads;

#endif

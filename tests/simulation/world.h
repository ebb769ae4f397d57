/* SPDX-License-Identifier: Apache-2.0
 *
 * A world in memory: a broker and a database that obey the SPIs and fail on command. All
 * faults come from one seeded generator, so that a seed replays a run.
 */
#ifndef WB_SIMULATION_WORLD_H
#define WB_SIMULATION_WORLD_H

#include <stdatomic.h>
#include <waybill/sys/persistence.h>
#include <waybill/sys/transport.h>

#define WORLD_MESSAGES 120
#define WORLD_SENT_MAX 20000
#define WORLD_BATCHES_MAX 60000
#define WORLD_STEPS_MAX 200000 /* a run that takes more does not end by itself */

typedef struct {
    wb_incoming incoming; /* first: the pipeline's pointer is ours */
    wb_header headers[1];
    char id[24];
    char body[24];
    int queued, unacknowledged, gone;
} world_message;

typedef struct {
    char id[40];
    char cause[24];
    char destination[24];
    uint64_t bytes_hash;
    int given_up; /* moved to the error queue because its handler ends the process */
} world_sent;

typedef struct {
    uint64_t batch;
    void *bytes;
    size_t size;
} world_pending;

typedef struct {
    char id[24];
    uint64_t batch;
} world_record;

typedef struct {
    /* broker */
    world_message messages[WORLD_MESSAGES];
    world_sent sent[WORLD_SENT_MAX];
    size_t sent_count;
    /* database, committed */
    world_record records[WORLD_MESSAGES * 2];
    size_t record_count;
    world_pending pending[WORLD_BATCHES_MAX];
    size_t pending_count;
    int effects[WORLD_MESSAGES];
    /* open transaction */
    int open;
    int failed; /* a statement failed: the transaction can only be rolled back */
    uint64_t batch;
    world_record claimed[WORLD_MESSAGES];
    size_t claimed_count;
    int new_effects[WORLD_MESSAGES];
    /* faults */
    uint64_t random;
    int fault_percent;
    int dead; /* the process has crashed: nothing it asks for happens any more */
    long steps;
    int64_t now; /* virtual, ns */
    int crash_after; /* steps until it does; 0: never */
    atomic_int *stop;
} world;

extern world the_world;
extern const wb_transport_ops world_transport;
extern const wb_persistence_ops world_persistence;

void world_reset(uint64_t seed);
/** A number from 0 to limit - 1. */
unsigned world_random(unsigned limit);
/** Whether a fault strikes now; counts steps towards the crash. */
int world_fault(void);
/** From here on nothing the process does has an effect. */
void world_die(void);
/** The process is gone: its transaction rolled back, its messages delivered again. */
void world_bury(void);
/** Whether anything is left to deliver. */
int world_is_drained(void);

#endif

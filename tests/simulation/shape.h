/* SPDX-License-Identifier: Apache-2.0
 *
 * The shape of a run: which promises are asked of which plugins, who works, what goes wrong.
 * A seed chooses one; a scenario writes its own.
 */
#ifndef WB_SIMULATION_SHAPE_H
#define WB_SIMULATION_SHAPE_H

#include <stdint.h>

#include "core/base/clock.h"
#include "tests/simulation/fate.h"

#define SIM_ENDPOINTS_MAX 2

typedef struct sim_shape {
    int mode; /* WB_MODE_x */
    int persistence, outbox;
    int positions; /* WB_POSITIONS_x (core/pipeline/pipeline.h); then queues have partitions */
    int apart;     /* ids of what is done with go to a deduplication store */
    unsigned incoming_keys; /* 0 to 5; of six messages so many have one: the order of each is kept, and queues have partitions */
    unsigned endpoints, processes, workers;
    unsigned retries, batch_max;
    int64_t batch_time;
    unsigned rate_after; /* failures in a row that limit attempts; 0: none do */
    int64_t rate_wait;
    /* broker */
    int pushes; /* messages are handed out ahead, up to the prefetch; else taken by receive() */
    int puts_off; /* what is acknowledged is gone with the session's next call; a death before has it come again */
    int has_prefetch, has_stop_receiving, has_release; /* optional functions */
    uint32_t delivery_limit;                           /* 0: none */
    int tells_limit;
    unsigned rebalance_permille; /* of receive(), beside each a partition is taken away */
    int64_t notices_late; /* that a process is no more, at most */
    int returns_first;    /* it says that it does not */
    int expires; /* messages with a time to be received are dropped when it is over */
    unsigned error_size_max; /* of a message in the error queue, headers and body; 0: no limit */
    /* database */
    int has_check, has_clock, has_next_pending, has_take;
    int store;        /* of delayed messages, and a poller in each process for each endpoint */
    int native;         /* the broker delays by itself */
    int refuses_delays; /* but not all */
    int drains;         /* and a store that is used no longer has some left */
    unsigned delayed_retries;
    int with_commit;  /* what is due later goes into the store with its batch */
    size_t lot;       /* messages of a poller's lot; 0: as many as usual, which is more than wait here */
    int64_t late_max; /* a delayed message that arrives later than so is a violation; 0: when it may */
    /* housekeeper */
    int keepers; /* in each process, for each endpoint with outbox */
    int64_t keeper_interval, sweep_after, retention;
    int lonely;       /* whoever claims several ids at a time meets a deadlock */
    int ends_trouble; /* what comes after a handler ended a transaction fails, too */
    int has_other;    /* a handler of all types that no other takes */
    int audits;       /* handled messages are copied to the audit queue */
    int foreign_rows; /* rows of a version to come are among the pending ones */
    /* programs that use sessions, of each endpoint in each process */
    unsigned programs, session_connections;
    unsigned sessions; /* of an endpoint */
    int sends_control;
    int64_t commit_duration, delay_increment;
    unsigned late_percent; /* of their commits take long to come to the database, or come behind their answer */
    /* programs that write in SQL, at each endpoint */
    unsigned writers, rows;
    unsigned keys; /* 0 to 4; of six rows so many have one */
    int dear_looks; /* at all rows */
    /* what goes wrong, while it storms */
    unsigned fault_permille; /* of the calls */
    unsigned fatal_permille; /* of the faults */
    unsigned outages, deaths, stops, jumps;
    /* messages */
    unsigned messages; /* of an endpoint */
    unsigned copies_percent, batch_percent;
    unsigned expire_percent; /* of them have a time to be received */
    sim_fate fates[8]; /* the unusual ones */
    unsigned fate_count, fate_percent;
    unsigned rare_max; /* messages that end processes, hang, or stay, of an endpoint */
    int hangs_hard; /* a handler that hangs does not even hear that its process stops */
    /* scheduler */
    unsigned switching;
    long steps_max;
} sim_shape;

extern sim_shape the_shape;

/** A plain one: nothing goes wrong. */
void sim_shape_plain(int mode, int outbox);
/** One drawn for a seed, with that mode. */
void sim_shape_draw(int mode);
/** Tell it. */
void sim_shape_tell(void);
/** Whether messages of that fate are drawn. */
int sim_shape_has(sim_fate fate);
/** Whether a message of that fate makes sense in it. */
int sim_shape_allows(sim_fate fate);

#endif

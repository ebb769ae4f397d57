/* SPDX-License-Identifier: Apache-2.0
 *
 * A member of the endpoint's consumer group, and those who receive by it: one a process for all of
 * its sessions, or one of a session's own where there are transactions.
 *
 * Its partitions stand in lanes, as many as the endpoint has workers. Each lane has a home: the
 * receiver of one session, who alone takes from it, so that a partition is one worker's at a time and
 * one that hangs holds up only what is in its lanes. A lane moves, with all that waits in it, when
 * sessions come and go (kafka-lanes.c).
 *
 * A thread of its own (kafka-poll.c) polls the client all the time, so that a handler may
 * take as long as it likes: it serves rebalances (kafka-assign.c) and the answers to
 * commits (kafka-commit.c). Messages do not pass through it: the queue of each partition is
 * forwarded to that of its lane, which the worker reads (kafka-receive.c). A partition may have to
 * wait (kafka-pause.c).
 *
 * The lock guards everything here but what is said to be constant or atomic. Whoever reads the
 * queue of a lane holds it, so a partition that is revoked under the lock yields nothing more. Nobody
 * waits for the network with it.
 */
#ifndef WB_KAFKA_CONSUMER_H
#define WB_KAFKA_CONSUMER_H

#include "plugins/transport/kafka/kafka-client.h"
#include "plugins/transport/kafka/kafka-message.h"
#include "plugins/transport/kafka/kafka-offsets.h"
#include "plugins/transport/kafka/kafka-share.h"
#include "plugins/transport/kafka/kafka-topology.h"

typedef struct wb_kafka_consumer wb_kafka_consumer;
typedef struct wb_kafka_receiver wb_kafka_receiver;
typedef struct wb_kafka_lane wb_kafka_lane;

/** No offset of a partition was sent to the open transaction. */
#define WB_KAFKA_NOT_PROMISED INT64_C(-1)

/* Why nothing is fetched of a partition. */
/** Too many messages are handled behind one that is not acknowledged. */
#define WB_KAFKA_PAUSED_GAP 1u
/** The next is over the limits, and the process holds one of them already. */
#define WB_KAFKA_PAUSED_LARGE 2u
/** The endpoint stops. */
#define WB_KAFKA_PAUSED_STOP 4u

/** So many handled messages may wait for an older one: that is how many are handled again
 *  when the session ends before that one is acknowledged, and what is kept of them in memory. */
#define WB_KAFKA_GAP_MAX 1000

/** A message that is still in hand when its worker has asked for more so often is kept for
 *  long: nobody waits for it when partitions move. */
#define WB_KAFKA_KEPT_TURNS 8

/** A partition from its assignment until it is revoked and none of its messages is left. */
struct wb_kafka_partition {
    wb_kafka_partition *next;
    wb_kafka_lane *lane;
    char topic[WB_KAFKA_TOPIC_SIZE];
    int32_t number;
    char name[WB_KAFKA_TOPIC_SIZE + 12]; /* of both: "topic/number" */
    size_t name_size;
    int lost;                /* revoked: nothing is committed any more */
    rd_kafka_queue_t *queue; /* forwarded to its lane's; NULL once lost */
    wb_kafka_offsets offsets;
    int64_t start;     /* where the assignment began */
    int begins_unknown;     /* that is with the first message there is, and none has come */
    int64_t sent;      /* the offset of the newest commit on its way or done */
    int64_t committed; /* the newest one the coordinator confirmed */
    size_t held;       /* messages that point here */
    wb_kafka_note found;    /* beside the committed offset, when it was assigned */
    wb_kafka_note sent_note; /* beside `sent` */
    int64_t careful_until; /* acknowledging messages before this offset waits for the commit; 0 */
    int64_t promised; /* the offset the open transaction commits so far; NOT_PROMISED */
    int noted;              /* that its first message is handed out is noted */
    int note_due;           /* must be committed, whether or not the offset has moved */
    int met_end;            /* since a message of it was handed out last */
    unsigned paused;        /* WB_KAFKA_PAUSED_x */
    wb_kafka_large_place large; /* in the line for a message over the limits */
    int large_held;         /* such a message of it is in hand, or given back */
    int64_t turn_ends;      /* its turn, unless it is used by then */
};

typedef struct wb_kafka_list {
    wb_kafka_message *first, *last;
    size_t count;
} wb_kafka_list;

struct wb_kafka_lane {
    rd_kafka_queue_t *messages; /* of its partitions; constant */
    wb_kafka_receiver *home;    /* NULL: there is none */
    size_t partitions;          /* that are ours */
    size_t in_hand;             /* messages of it in its home's hands */
    wb_kafka_list returned;     /* given back: handed out again before anything newer */
    size_t taken;               /* bytes of bodies, since it may have been full last */
    wb_kafka_partition *recent; /* of the last message; NULL: unknown */
};

/** Of one session. Guarded by the consumer's lock, unless said otherwise. */
struct wb_kafka_receiver {
    wb_kafka_consumer *consumer; /* constant; NULL: the session does not receive */
    wb_kafka_receiver *next;
    int wake;               /* eventfd: messages, or interrupted; constant */
    atomic_int interrupted; /* atomic */
    wb_kafka_list in_hand;
    uint32_t prefetch;
    uint64_t turns; /* how often the worker asked for messages */
    size_t lanes, partitions; /* whose home it is */
    int stopped; /* hands out nothing any more */
};

struct wb_kafka_consumer {
    wb_kafka_shared shared; /* first */
    /* constant */
    wb_transport *transport;
    int slot; /* of its name */
    int owns_slot;
    wb_kafka_client *client;
    wb_kafka_lane *lanes;
    size_t lane_count;
    rd_kafka_queue_t *commits;  /* answers to commits */
    rd_kafka_queue_t *events;   /* what the poll thread serves */
    int poll_wake;              /* eventfd: events or answers, or stop */
    int64_t drain_max;          /* longest wait for the workers when partitions are revoked */
    pthread_t thread;
    int running;
    int64_t oversize_next; /* poll thread's: when a message that cannot be received is looked for */
    /* atomic */
    atomic_int stop;
    /* guarded */
    pthread_mutex_t lock;
    pthread_cond_t settled;  /* something left a worker's hands, or it closes */
    pthread_cond_t answered; /* a commit was answered, or nobody serves answers any more */
    wb_kafka_failure failure;
    wb_kafka_partition *partitions; /* lost ones, too, while messages point to them */
    wb_kafka_receiver *receivers;
    int is_uneven; /* lanes would move, but messages of them are in hand */
    int is_hungry; /* a lane ran empty that may have been full */
    int draining;
    int closing;
    int has_left;  /* the group */
    int ends; /* the commit that is being made is the last of these partitions */
    int committing; /* a commit is on its way */
    int serving;    /* somebody waits for its answer */
    uint64_t commits_begun, commits_failed; /* how many; the number of the last that failed */
    rd_kafka_resp_err_t commit_refused; /* what the last one failed for, or 0 */
    int64_t commit_next; /* when the next may begin by itself, after a refusal */
    int commit_unknown; /* what became of one is not known: it may yet take effect */
    int promise_broken; /* a partition with a promise was taken away */
    int ending;     /* a transaction is being committed: its offsets count, and no others */
    int frozen;     /* a transaction is in doubt: nothing is committed any more */
};

/** Join the group, under the name of a session, or of its own (NULL). @return NULL with `failure`
 *  filled. */
wb_kafka_consumer *wb_kafka_consumer_open(wb_transport *transport, int slot, const char *name,
                                          wb_kafka_failure *failure);
/** Commit what is done, leave, free. Nobody may receive by it any more. */
void wb_kafka_consumer_close(wb_kafka_consumer *consumer);

/** The process's. @return NULL with `failure` filled. */
wb_kafka_consumer *wb_kafka_consumer_take(wb_transport *transport, wb_kafka_failure *failure);
void wb_kafka_consumer_give_back(wb_kafka_consumer *consumer);

/* ---- kafka-lanes.c ---- */

/** As many as the endpoint has workers, or one. @return 0 when memory is out. */
int wb_kafka_lanes_make(wb_kafka_consumer *consumer, size_t count);
void wb_kafka_lanes_free(wb_kafka_consumer *consumer);
/** Where a partition that comes should stand. @locks lock held */
wb_kafka_lane *wb_kafka_lane_choose(const wb_kafka_consumer *consumer);
/** A partition comes to stand in a lane, or (-1) is lost. @locks lock held */
void wb_kafka_lane_count(wb_kafka_lane *lane, int change);
/** Give each lane a home, and each receiver its share, as far as lanes may move now.
 *  @locks lock held */
void wb_kafka_lanes_spread(wb_kafka_consumer *consumer);

/** Begin to receive. @return 0, or an error number. */
int wb_kafka_receiver_attach(wb_kafka_receiver *receiver, wb_kafka_consumer *consumer,
                             uint32_t prefetch);
/** What is in hand is given back, and counts a delivery or none. Also of one that is all zero. */
void wb_kafka_receiver_detach(wb_kafka_receiver *receiver, int counts);
int wb_kafka_receiver_is_open(const wb_kafka_receiver *receiver);
/** Make the worker look. Any thread. */
void wb_kafka_receiver_wake(wb_kafka_receiver *receiver);
/** All of them. @locks lock held */
void wb_kafka_receivers_wake(const wb_kafka_consumer *consumer);

/* ---- kafka-poll.c ---- */

/** @return 0, or an error number. */
int wb_kafka_poll_start(wb_kafka_consumer *consumer);
void wb_kafka_poll_stop(wb_kafka_consumer *consumer);

/* ---- kafka-assign.c ---- */

/** librdkafka's rebalance callback; opaque is the client. @locality poll thread, or the
 *  worker that closes */
void wb_kafka_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                           rd_kafka_topic_partition_list_t *partitions, void *opaque);

/** A partition that is ours, or NULL. @locks lock held */
wb_kafka_partition *wb_kafka_partition_find(const wb_kafka_consumer *consumer, const char *topic,
                                            int32_t number);
/** The first that there is stands here, if that was not known. @locks lock held */
void wb_kafka_partition_begin(wb_kafka_partition *partition, int64_t offset);
/** A message of it is gone: free it if it is lost and this was the last. @locks lock held */
void wb_kafka_partition_release(wb_kafka_consumer *consumer, wb_kafka_partition *partition);
/** Revoke all, for closing. @locks lock held */
void wb_kafka_partitions_lose(wb_kafka_consumer *consumer);

/* ---- kafka-start.c ---- */

/** Where reading of partitions begins. `committed` and `starts` hold the same partitions; both
 *  are sorted, and filled with what the group has committed (with its notes) and with where to
 *  begin: where nothing is committed and the leader does not say, RD_KAFKA_OFFSET_BEGINNING. Waits
 *  for answers, and while a transaction over the offsets is open. @return 0 or an error code.
 *  @locality poll thread, lock not held */
rd_kafka_resp_err_t wb_kafka_start_find(wb_kafka_consumer *consumer,
                                        rd_kafka_topic_partition_list_t *committed,
                                        rd_kafka_topic_partition_list_t *starts);

/* ---- kafka-oversize.c ---- */

/** Where an answer was too large to be received, say which message stops its partition: once a
 *  minute. Takes up to 5 s a partition, drain_max in all. @locality poll thread, lock not held */
void wb_kafka_consumer_follow_oversize(wb_kafka_consumer *consumer);

/* ---- kafka-hunger.c ---- */

/** A lane has no more messages, for now. @locks lock held */
void wb_kafka_lane_ran_empty(wb_kafka_consumer *consumer, wb_kafka_lane *lane);
/** See that the library looks for room. @locality poll thread, lock not held */
void wb_kafka_consumer_follow_hunger(wb_kafka_consumer *consumer);

/* ---- kafka-pause.c: all with the lock held ---- */

/** Fetch nothing of a partition, or again if no other reason is left. */
void wb_kafka_partition_pause(const wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                              unsigned reason);
void wb_kafka_partition_resume(const wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                               unsigned reason);
/** Something was acknowledged: partitions begin to wait, or go on. */
void wb_kafka_consumer_follow_gaps(const wb_kafka_consumer *consumer);
/** Whether a message over the limits may be handed out. If not, its partition goes back to it
 *  and waits for its turn. */
int wb_kafka_large_admit(wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                         const rd_kafka_message_t *raw);
/** One that was admitted is gone. */
void wb_kafka_large_release(const wb_kafka_consumer *consumer, wb_kafka_partition *partition);
/** The partition is lost: it asks no longer. */
void wb_kafka_large_forget(const wb_kafka_consumer *consumer, wb_kafka_partition *partition);
/** Partitions whose turn has come go on. */
void wb_kafka_consumer_follow_turns(const wb_kafka_consumer *consumer);

/* ---- kafka-commit.c ---- */

/** Commit what changed, unless a commit is on its way (the newest wins), or one has just failed: the
 *  poll thread does it then. @locks lock held */
void wb_kafka_commit_start(wb_kafka_consumer *consumer);
/** Take note of answers that are there, unless somebody waits for them. @locks lock held */
void wb_kafka_commit_serve(wb_kafka_consumer *consumer);
/** Commit and wait for the answer. With `last`, also notes that changed while their offset did
 *  not: nothing more will be heard of these messages from us. @return whether what was due is
 *  committed. @locks lock held, released while it waits */
int wb_kafka_commit_flush(wb_kafka_consumer *consumer, int64_t deadline, int last);

/** An offset and its note, for a commit. */
void wb_kafka_commit_list_add(rd_kafka_topic_partition_list_t *list,
                              const wb_kafka_partition *partition, int64_t offset,
                              wb_kafka_note note);

/* ---- kafka-promise.c ---- */

/** What a transaction that begins will commit if all messages in hand are acknowledged: it is
 *  promised from now on. Maybe nothing. To be released with
 *  rd_kafka_topic_partition_list_destroy(). */
rd_kafka_topic_partition_list_t *wb_kafka_receiver_promise(wb_kafka_receiver *receiver);
/** What it commits after all and was not promised, maybe nothing; to be released likewise. From
 *  then on nothing else is committed, until settle_commit or settle_undo.
 *  @return NULL when a message settled or a partition with a promise is no longer ours, or about to be
 *  taken away. */
rd_kafka_topic_partition_list_t *wb_kafka_receiver_progress(wb_kafka_receiver *receiver);

/* ---- kafka-receive.c ---- */

/** wb_transport_ops.receive. @return WB_OK or failure.result. */
int wb_kafka_receiver_receive(wb_kafka_receiver *receiver, int64_t deadline,
                              const wb_incoming **ret_messages, size_t max, size_t *ret_count);
/** An error the client reported; those that end the session are kept in `failure`. */
void wb_kafka_consumer_note_error(wb_kafka_consumer *consumer, const rd_kafka_message_t *message);

/* ---- kafka-hands.c ---- */

/** Before `next`, or at the end. @locks lock held, for all up to the next ones */
void wb_kafka_list_insert(wb_kafka_list *list, wb_kafka_message *message, wb_kafka_message *next);
void wb_kafka_list_remove(wb_kafka_list *list, wb_kafka_message *message);
/** Into the worker's hands. */
void wb_kafka_receiver_hold(wb_kafka_receiver *receiver, wb_kafka_message *message);
/** Whether a message is in somebody's hands that is being handled, not kept. @locks lock held */
int wb_kafka_consumer_is_busy(const wb_kafka_consumer *consumer);
/** Free one that is in no list. */
void wb_kafka_message_forget(wb_kafka_consumer *consumer, wb_kafka_message *message);
/** Whatever is in hand goes back to its lane, counted or not, or is forgotten: the session ends. */
void wb_kafka_receiver_let_go(wb_kafka_receiver *receiver, int counts);

/** wb_transport_ops.acknowledge, give_back. */
void wb_kafka_receiver_acknowledge(wb_kafka_receiver *receiver, const wb_incoming *const *messages,
                                   size_t count);
void wb_kafka_receiver_give_back(wb_kafka_receiver *receiver, const wb_incoming *const *messages,
                                 size_t count);
/** Acknowledge inside a transaction: undone by the last function, final with the one
 *  before. @return 0 when one of the messages is no longer ours. */
int wb_kafka_receiver_settle(wb_kafka_receiver *receiver, const wb_incoming *const *messages,
                             size_t count);
void wb_kafka_receiver_settle_commit(wb_kafka_receiver *receiver);
void wb_kafka_receiver_settle_undo(wb_kafka_receiver *receiver);
/** wb_transport_ops.stop_receiving. */
void wb_kafka_receiver_stop(wb_kafka_receiver *receiver);
/** A transaction is in doubt: whatever offset we know may be set back by committing it. */
void wb_kafka_consumer_freeze(wb_kafka_consumer *consumer);
/** Drop what was given back, of lost partitions alone or of all. @locks lock held */
void wb_kafka_messages_drop(wb_kafka_consumer *consumer, int all);

#endif

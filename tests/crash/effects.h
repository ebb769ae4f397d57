/* SPDX-License-Identifier: Apache-2.0
 *
 * What the handlers of the crash suite do, whatever the database: for each message an
 * effect and a ledger entry in the framework's transaction, then one or two outgoing
 * messages. The message says what else (see `orders` below); the environment says where
 * the process dies:
 *
 *   CRASH_HANDLER=N   SIGKILL at the Nth time between the two business writes
 *   CRASH_PREFIX=P    names of queues and of the event begin with it
 *   CRASH_NOWHERE=Q   the queue that does not exist, if it is not "nowhere"
 *   CRASH_ARRIVALS=F  append a line to F for each attempt: id, time, when it was due
 *                     (NServiceBus.DeliverAt), number of the delayed retry, digests of body and headers
 *
 * A body reads "seq=12 key=k2 amount=7 do=- ...". `do` is one of
 *   -         nothing special
 *   fail:K    the first K attempts fail
 *   reject    fails for good
 *   abort     ends the process each time; likewise exit, by exit(0), and leave, by pthread_exit()
 *   nowhere   sends to a queue that does not exist
 *   slow:MS   takes that long
 *   retry:K   fails until its Kth delayed retry
 *   later:MS  also sends a message like itself, "ID-late", to this endpoint, due so much later;
 *             0: due long ago
 *   astray:MS sends that one to a queue that does not exist
 */
#ifndef WB_TESTS_CRASH_EFFECTS_H
#define WB_TESTS_CRASH_EFFECTS_H

#include <waybill/handler.h>

/** A message, read. */
typedef struct effect {
    const wb_message *message;
    int seq;
    int amount;
    char key[32];
    char order[32]; /* what comes after "do=" */
    char hash[17];  /* of the body, in hexadecimal */
} effect;

/** Read a message and follow those of its orders that come before any write.
 *  @return WB_OK, or what the handler returns at once. */
int effect_read(wb_context *ctx, const wb_message *message, effect *ret_effect);

/** Die here if told to: between the two business writes. */
void effect_between_writes(void);

/** Ask for the outgoing messages: a command to the queue "sink", and for odd seq the
 *  event Crash.Happened; then what is delayed. `grouped`: in a batch handler with several messages. */
int effect_send(wb_context *ctx, const effect *e, int grouped);

#endif

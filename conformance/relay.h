/* SPDX-License-Identifier: Apache-2.0
 *
 * A relay: takes the place of a plugin's connections to its server, without the plugin
 * noticing, and loses a request or a reply when told to. A plugin's descriptor then leads to
 * the relay and the relay's to the server; a thread carries the bytes, whatever they mean.
 *
 * What a plugin sends between two replies is a request; what comes until it sends again is the
 * reply: on each of its connections, whose requests are counted together. Works for plugins that wait with poll(), select(), epoll or in a call that reads, with one
 * descriptor a connection; not with io_uring, which holds on to the file behind the descriptor.
 */
#ifndef WB_CONFORMANCE_RELAY_H
#define WB_CONFORMANCE_RELAY_H

#include <stdint.h>

#include "conformance/wires.h"

typedef enum wb_loss {
    WB_LOSE_REQUEST,        /* the server never sees it */
    WB_LOSE_REPLY,          /* the server has done all and answered */
    WB_CRASH_AT_REQUEST,    /* the request is on its way when the command runs */
    WB_CRASH_AT_REPLY,      /* the server has answered, and then the command runs */
} wb_loss;

typedef struct wb_relay wb_relay;

/** Put a relay into the connections opened since. NULL: there are none. */
wb_relay *wb_relay_start(const wb_wires *before);

/** From now on let `spared` requests and their replies pass, then lose and break the
 *  connections. `command`: what crashes the server; runs to its end before they break. */
void wb_relay_arm(wb_relay *relay, wb_loss loss, unsigned spared, const char *command);

/** Before it is armed: for so long after the loss, or until wb_relay_stop(), connect() is refused (away.h), and
 *  what connects anew in another way is cut. Else who connects again by itself would ask again, and know. */
void wb_relay_keep_away(wb_relay *relay, int64_t duration);

/** Whether it has come to that. */
int wb_relay_has_struck(wb_relay *relay);

/** Breaks the connections, which remain the plugin's to close. */
void wb_relay_stop(wb_relay *relay);

/** Run a shell command; what it prints goes to stderr. @return whether it succeeded. */
int wb_relay_run(const char *command);

#endif

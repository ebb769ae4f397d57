/* SPDX-License-Identifier: Apache-2.0
 *
 * What a service manager is told, by the protocol of sd_notify(3): datagrams to the socket that
 * $NOTIFY_SOCKET names. Where there is none, nothing happens.
 *
 * Main thread only.
 */
#ifndef WB_CLI_NOTIFY_H
#define WB_CLI_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct cli_notify {
    int socket; /* -1: nobody listens */
    struct sockaddr_un address;
    socklen_t address_size;
    int64_t watchdog; /* ns within which it wants to be fed; 0: no watchdog of this process */
} cli_notify;

/** Read the environment. */
void cli_notify_open(cli_notify *notify);
void cli_notify_close(cli_notify *notify);
/** Send assignments, a line each: "READY=1\nSTATUS=..". Never waits; a manager that does not listen
 *  is no failure of ours. */
void cli_notify_send(const cli_notify *notify, const char *text);

#endif

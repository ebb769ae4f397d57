/* SPDX-License-Identifier: Apache-2.0
 *
 * A proxy between a plugin and its server that can delay, swallow and cut.
 */
#ifndef PROXY_H
#define PROXY_H

#include <stddef.h>

/** What happens to a direction of the proxied connection. */
#define PROXY_PASS 0
#define PROXY_SWALLOW 1
typedef struct proxy proxy;
/** `server_host` is an address, and stays valid. */
proxy *proxy_start(const char *server_host, int server_port);
int proxy_port(const proxy *p);
void proxy_set_delay(proxy *p, int milliseconds); /* each way */
void proxy_to_server(proxy *p, int what);
void proxy_to_client(proxy *p, int what);
/** Wait until the connection that is proxied now has ended for its client, too. */
void proxy_await_end(const proxy *p);
/** Say something to the client that its server did not. */
void proxy_tell_client(proxy *p, const void *bytes, size_t size);
/** Close the connection that is proxied now; later ones are let through. */
void proxy_cut(proxy *p);
void proxy_stop(proxy *p);

#endif

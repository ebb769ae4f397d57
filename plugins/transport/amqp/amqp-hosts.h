/* SPDX-License-Identifier: Apache-2.0
 *
 * The brokers to connect to: `host`, or the names of `hosts`, which are nodes of one cluster.
 */
#ifndef WB_AMQP_HOSTS_H
#define WB_AMQP_HOSTS_H

#include "plugins/transport/amqp/amqp-options.h"

#define WB_AMQP_HOSTS_MAX 16
#define WB_AMQP_HOST_SIZE 256

typedef struct wb_amqp_host {
    char name[WB_AMQP_HOST_SIZE]; /* without brackets */
    int port;                     /* never 0 */
} wb_amqp_host;

typedef struct wb_amqp_hosts {
    size_t count;
    wb_amqp_host list[WB_AMQP_HOSTS_MAX];
} wb_amqp_hosts;

/** Read the configuration: "a,b:5673,[::1]:5672", spaces around names allowed.
 *  @return NULL, or what is wrong with it. */
const char *wb_amqp_hosts_read(const wb_amqp_config *config, wb_amqp_hosts *hosts);

/** Another order, by chance, so that the connections of many processes spread. */
void wb_amqp_hosts_shuffle(wb_amqp_hosts *hosts);

/** The first name that is not this machine's (by name only: resolving would ask the network,
 *  and trust the answer), or NULL. */
const char *wb_amqp_hosts_find_remote(const wb_amqp_config *config, wb_amqp_hosts *hosts);

#endif

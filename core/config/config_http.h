/* SPDX-License-Identifier: Apache-2.0
 *
 * The group `http`: where the process answers, and whom. Another address than one of the loopback needs TLS and a token: what is
 * answered names endpoints and says how they are, and what is asked for takes memory.
 */
#ifndef WB_CONFIG_CONFIG_HTTP_H
#define WB_CONFIG_CONFIG_HTTP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/config/configuration.h"

/** Read it into config->http; a file without it has none. Problems are added, each with its line. */
void wb_config_read_http(wb_config *config, const wb_conf_node *root, wb_problems *problems);

/** The same of the group `console`, which shows at that address what people want to see: behind it. */
void wb_config_read_console(wb_config *config, const wb_conf_node *root, wb_problems *problems);

/** Whether an address is one that only this host can reach. */
int wb_http_is_loopback(const struct sockaddr_storage *address);
/** "127.0.0.1:9464", "[::1]:9464", "localhost:9464": an address in numbers, and a port from 1 to 65535. @return 0: it is none. */
int wb_http_parse_address(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_size);

#endif

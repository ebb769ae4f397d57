/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of servers that may be quoted. "user:pass@host" where a name belongs, or a URI whose password
 * holds an "@" that is not escaped: what comes out as the name then holds a part of the password, and
 * the client library quotes it when it does not find that server.
 */
#ifndef WB_COMMON_SERVERS_H
#define WB_COMMON_SERVERS_H

#include <waybill/sys/plugin.h>

/** Check a list of names, separated by commas or blanks; NULL is none. Paths of sockets, abstract ones
 *  ("@name") too, may hold anything. `option` says in words where the names come from.
 *  @return WB_OK, or WB_FATAL with a sentence that quotes none of them. */
int wb_common_servers_check(const wb_host *host, const char *option, const char *names, wb_error *error);

#endif

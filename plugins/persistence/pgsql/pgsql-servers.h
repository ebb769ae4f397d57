/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers that "host", "hostaddr" and "port" list, apart. libpq tries them one after the
 * other, too, but it has no time limit for each unless it may block, and it does not go on behind
 * one that answers and then goes away.
 */
#ifndef PGSQL_SERVERS_H
#define PGSQL_SERVERS_H

#include <stddef.h>

/** Of a name, no more are tried. */
#define PGSQL_ADDRESSES_MAX 16
#define PGSQL_ADDRESS_SIZE 64

/** NULL is what libpq takes. */
typedef struct pgsql_server {
    char *host;
    char *address;
    char *port;
} pgsql_server;

typedef struct pgsql_servers {
    pgsql_server *list; /* in the order they were written in */
    size_t count;       /* at least 1 */
} pgsql_servers;

/** Each may be NULL. Lists of different lengths are one server of which nothing is known: libpq
 *  says what is wrong. @return 0, or -1: no memory. */
int pgsql_servers_split(const char *hosts, const char *addresses, const char *ports,
                        pgsql_servers *ret_servers);
void pgsql_servers_free(pgsql_servers *servers);

/** What the server's name stands for, if that is more than one address: each is to have its own
 *  deadline. Asks the resolver, which may block. @return how many; 0: as libpq thinks best. */
size_t pgsql_server_addresses(const pgsql_server *server,
                              char ret_addresses[PGSQL_ADDRESSES_MAX][PGSQL_ADDRESS_SIZE]);

/** The list behind its first element, or NULL. */
const char *pgsql_next_in_list(const char *list, size_t *ret_size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-servers.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

const char *pgsql_next_in_list(const char *list, size_t *ret_size)
{
    *ret_size = strcspn(list, ",");
    return list[*ret_size] ? list + *ret_size + 1 : NULL;
}

static size_t length_of(const char *list)
{
    size_t count = 0;
    size_t size;
    while (list) {
        list = pgsql_next_in_list(list, &size);
        count++;
    }
    return count;
}

/* The element of a list; the only one stands for all. NULL: it says nothing, or no memory. */
static char *element(const char *list, size_t at, int *ret_failed)
{
    const char *start = list;
    size_t size = 0;

    if (!list)
        return NULL;
    if (length_of(list) == 1)
        at = 0;
    list = pgsql_next_in_list(list, &size);
    for (; at && list; at--) {
        start = list;
        list = pgsql_next_in_list(list, &size);
    }
    char *copy = size ? strndup(start, size) : NULL;
    *ret_failed |= size && !copy;
    return copy;
}

/* 0: they do not fit. */
static size_t count_servers(const char *hosts, const char *addresses, const char *ports)
{
    const size_t count = addresses ? length_of(addresses) : hosts ? length_of(hosts) : 1;
    const int fits = (!hosts || !addresses || length_of(hosts) == count) &&
                     (length_of(ports) <= 1 || length_of(ports) == count);
    return fits ? count : 0;
}

int pgsql_servers_split(const char *hosts, const char *addresses, const char *ports,
                        pgsql_servers *ret_servers)
{
    const size_t count = count_servers(hosts, addresses, ports);
    int failed = 0;

    ret_servers->count = count ? count : 1;
    ret_servers->list = calloc(ret_servers->count, sizeof *ret_servers->list);
    if (!ret_servers->list)
        return -1;
    for (size_t i = 0; i < count; i++)
        ret_servers->list[i] = (pgsql_server){ element(hosts, i, &failed),
                                               element(addresses, i, &failed),
                                               element(ports, i, &failed) };
    return failed ? -1 : 0;
}

void pgsql_servers_free(pgsql_servers *servers)
{
    for (size_t i = 0; servers->list && i < servers->count; i++) {
        free(servers->list[i].host);
        free(servers->list[i].address);
        free(servers->list[i].port);
    }
    free(servers->list);
    *servers = (pgsql_servers){ 0 };
}

/* A name, and not the directory of a socket, nor an address. */
static int is_name(const pgsql_server *server)
{
    return server->host && !server->address && *server->host != '/' && *server->host != '@';
}

size_t pgsql_server_addresses(const pgsql_server *server,
                              char ret_addresses[PGSQL_ADDRESSES_MAX][PGSQL_ADDRESS_SIZE])
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    size_t count = 0;

    if (!is_name(server) || getaddrinfo(server->host, NULL, &hints, &found) != 0)
        return 0;
    for (const struct addrinfo *a = found; a && count < PGSQL_ADDRESSES_MAX; a = a->ai_next)
        if (getnameinfo(a->ai_addr, a->ai_addrlen, ret_addresses[count], PGSQL_ADDRESS_SIZE, NULL,
                        0, NI_NUMERICHOST) == 0)
            count++;
    freeaddrinfo(found);
    return count > 1 ? count : 0;
}

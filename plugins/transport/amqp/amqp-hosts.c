/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "plugins/common/loopback.h"

/* ":5673" behind a name. */
static const char *read_port(const char *text, size_t size, int *ret_port)
{
    int port = 0;
    if (!size)
        return NULL;
    if (text[0] != ':' || size < 2 || size > 6)
        return "a port follows a name behind a colon";
    for (size_t i = 1; i < size; i++)
        port = text[i] >= '0' && text[i] <= '9' && port >= 0 ? port * 10 + (text[i] - '0') : -1;
    if (port < 1 || port > 65535)
        return "a port is a number from 1 to 65535";
    *ret_port = port;
    return NULL;
}

/* What no resolver knows would be looked up otherwise, or be read as two names elsewhere. */
static int is_name(const char *name)
{
    return !name[strcspn(name, "[] \t\r\n")];
}

/* "name", "name:port", "address", "[::1]:port". An address of version 6 with a port needs
 * brackets; without either it is taken whole. */
static const char *read_one(const char *text, size_t size, wb_amqp_host *host)
{
    const char *colon = memchr(text, ':', size);
    const char *bracket = text[0] == '[' ? memchr(text, ']', size) : NULL;
    size_t name = size;
    if (text[0] == '[' && !bracket)
        return "a bracket is not closed";
    if (bracket)
        name = (size_t)(bracket + 1 - text);
    else if (colon && !memchr(colon + 1, ':', size - (size_t)(colon + 1 - text)))
        name = (size_t)(colon - text);
    size_t skip = bracket != NULL;
    if (name <= 2 * skip || name - 2 * skip >= sizeof host->name)
        return "a name is empty or too long";
    memcpy(host->name, text + skip, name - 2 * skip);
    host->name[name - 2 * skip] = '\0';
    if (!is_name(host->name))
        return "a name holds a bracket or a blank";
    return read_port(text + name, size - name, &host->port);
}

static int is_loopback(const wb_amqp_host *host)
{
    return wb_common_is_loopback(host->name, strlen(host->name));
}

static int default_port(const wb_amqp_config *config, const wb_amqp_hosts *hosts)
{
    int is_remote = 0;
    for (size_t i = 0; i < hosts->count; i++)
        is_remote |= !is_loopback(&hosts->list[i]);
    if (config->port)
        return (int)config->port;
    return config->tls == WB_AMQP_TLS_ON || (config->tls == WB_AMQP_TLS_AUTO && is_remote) ? 5671 : 5672;
}

static const char *read_list(const char *text, wb_amqp_hosts *hosts)
{
    const char *problem = NULL;
    while (!problem) {
        text += strspn(text, " ");
        size_t size = strcspn(text, ","), name = size;
        while (name && text[name - 1] == ' ')
            name--;
        if (!name)
            return "a name is empty";
        if (hosts->count == WB_AMQP_HOSTS_MAX)
            return "there are more than 16";
        problem = read_one(text, name, &hosts->list[hosts->count++]);
        if (!text[size])
            break;
        text += size + 1;
    }
    return problem;
}

static const char *read_single(const char *text, wb_amqp_hosts *hosts)
{
    wb_amqp_host *host = &hosts->list[hosts->count++];
    const char *problem = read_one(text, strlen(text), host);
    return problem || !host->port ? problem : "a port belongs into the option port";
}

const char *wb_amqp_hosts_read(const wb_amqp_config *config, wb_amqp_hosts *hosts)
{
    memset(hosts, 0, sizeof *hosts);
    const char *problem = config->hosts ? read_list(config->hosts, hosts) : read_single(config->host, hosts);
    int port = default_port(config, hosts);
    for (size_t i = 0; i < hosts->count; i++)
        hosts->list[i].port = hosts->list[i].port ? hosts->list[i].port : port;
    return problem;
}

void wb_amqp_hosts_shuffle(wb_amqp_hosts *hosts)
{
    unsigned chance[WB_AMQP_HOSTS_MAX] = { 0 };
    if (getrandom(chance, sizeof chance, 0) < 0)
        return; /* the order of the file, then */
    for (size_t left = hosts->count; left > 1; left--) {
        size_t drawn = chance[left - 1] % left;
        wb_amqp_host last = hosts->list[left - 1];
        hosts->list[left - 1] = hosts->list[drawn];
        hosts->list[drawn] = last;
    }
}

const char *wb_amqp_hosts_find_remote(const wb_amqp_config *config, wb_amqp_hosts *hosts)
{
    (void)wb_amqp_hosts_read(config, hosts);
    for (size_t i = 0; i < hosts->count; i++)
        if (!is_loopback(&hosts->list[i]))
            return hosts->list[i].name;
    return NULL;
}

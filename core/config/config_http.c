/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/config_http.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_MIN 16
#define TOKEN_MAX 512
#define HOST_SIZE 64
#define REASON_SIZE 4400

typedef struct {
    wb_config *config;
    wb_problems *problems;
    const wb_conf_node *group;
} reading;

/* ---- the address ------------------------------------------------------------------------- */

static int parse_port(const char *text, uint16_t *ret_port)
{
    char *end = NULL;
    if (*text < '1' || *text > '9')
        return 0;
    unsigned long port = strtoul(text, &end, 10);
    *ret_port = htons((uint16_t)port);
    return *end == '\0' && port <= 65535;
}

/* The host without brackets, which an address of IPv6 has. */
static int split(const char *text, char host[HOST_SIZE], const char **ret_port, int *ret_is_bracketed)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    *ret_is_bracketed = size > 2 && *text == '[' && text[size - 1] == ']';
    if (*ret_is_bracketed) {
        text++;
        size -= 2;
    }
    if (!size || size >= HOST_SIZE)
        return 0;
    memcpy(host, text, size);
    host[size] = '\0';
    *ret_port = colon + 1;
    return 1;
}

int wb_http_parse_address(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_size)
{
    char host[HOST_SIZE];
    const char *port;
    int is_bracketed;
    struct sockaddr_in *four = (struct sockaddr_in *)ret_address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret_address;
    memset(ret_address, 0, sizeof *ret_address);
    if (!split(text, host, &port, &is_bracketed))
        return 0;
    if (is_bracketed) {
        six->sin6_family = AF_INET6;
        *ret_size = sizeof *six;
        return inet_pton(AF_INET6, host, &six->sin6_addr) == 1 && parse_port(port, &six->sin6_port);
    }
    four->sin_family = AF_INET;
    *ret_size = sizeof *four;
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &four->sin_addr) == 1 &&
           parse_port(port, &four->sin_port);
}

int wb_http_is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    return address->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)
                                          : ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* ---- checks ------------------------------------------------------------------------------ */

static wb_conf_origin place_of(const reading *r, const char *name)
{
    const wb_conf_node *node = wb_conf_child(r->group, name);
    return node ? node->at : r->group->at;
}

static void check_address(const reading *r)
{
    const wb_http_config *http = &r->config->http;
    struct sockaddr_storage address;
    socklen_t size;
    if (!wb_http_parse_address(http->listen, &address, &size)) {
        wb_problems_add(r->problems, WB_LOG_ERROR, place_of(r, "listen"),
                        "option \"http.listen\" = \"%.100s\" is not an address in numbers and a port; write \"127.0.0.1:9464\" "
                        "or \"[::1]:9464\"",
                        http->listen);
        return;
    }
    if (wb_http_is_loopback(&address) || (http->tls_cert_file && http->tls_key_file && http->token))
        return;
    wb_problems_add(r->problems, WB_LOG_ERROR, place_of(r, "listen"),
                    "option \"http.listen\" = \"%s\" can be reached from other hosts, which needs tls_cert_file, tls_key_file "
                    "and token; set them, or use \"127.0.0.1:PORT\"",
                    http->listen);
}

static void check_token(const reading *r)
{
    const char *token = r->config->http.token;
    size_t size = token ? strlen(token) : TOKEN_MIN, printable = 0;
    for (const char *c = token; c && *c; c++)
        printable += *c > ' ' && *c <= '~';
    if (size < TOKEN_MIN || size > TOKEN_MAX || (token && printable != size))
        wb_problems_add(r->problems, WB_LOG_ERROR, place_of(r, "token"),
                        "option \"http.token\" is not %d to %d printable ASCII characters without blanks; openssl rand -hex 32 "
                        "makes one",
                        TOKEN_MIN, TOKEN_MAX);
}

static void complain_of_file(const reading *r, const char *option, const char *reason)
{
    wb_problems_add(r->problems, WB_LOG_ERROR, place_of(r, option), "option \"http.%s\": %s", option, reason);
}

static void read_files(const reading *r)
{
    wb_config *config = r->config;
    wb_http_config *http = &config->http;
    char reason[REASON_SIZE];
    if (!http->tls_cert_file != !http->tls_key_file)
        complain_of_file(r, http->tls_cert_file ? "tls_cert_file" : "tls_key_file",
                         "is of no use alone; a certificate and its key belong together");
    if (!http->tls_cert_file || !http->tls_key_file)
        return;
    http->certificate = wb_public_read(&config->arena, http->tls_cert_file, reason, sizeof reason);
    if (!http->certificate)
        complain_of_file(r, "tls_cert_file", reason);
    http->key = wb_secret_read(&config->secrets, &config->arena, http->tls_key_file, reason, sizeof reason);
    if (!http->key)
        complain_of_file(r, "tls_key_file", reason);
}

static void check_program(const reading *r)
{
#ifndef HAVE_LIBMICROHTTPD
    wb_problems_add(r->problems, WB_LOG_ERROR, r->group->at,
                    "group \"http\" needs a waybill that was built with libmicrohttpd; build it so, or leave the group out");
#else
    (void)r;
#endif
}

void wb_config_read_http(wb_config *config, const wb_conf_node *root, wb_problems *problems)
{
    const wb_config_section *table = &wb_config_sections[WB_SECTION_HTTP];
    const reading r = { config, problems, wb_conf_child(root, "http") };
    const wb_option_scope scope = { &config->arena, &config->secrets, problems, "group \"http\": ", NULL };
    if (!r.group)
        return;
    config->http.at = r.group->at;
    (void)wb_options_parse(&scope, table->options, table->option_count, sizeof *table->options, r.group, r.group->at, config,
                           NULL);
    check_program(&r);
    if (config->http.listen)
        check_address(&r);
    check_token(&r);
    read_files(&r);
}

/* ---- the console ------------------------------------------------------------------------- */

/* Who may change something has to be known, on the loopback, too: every user of the host can ask there. */
static void check_console(const reading *r)
{
    const wb_config *config = r->config;
    if (!config->http.at.is_set)
        wb_problems_add(r->problems, WB_LOG_ERROR, r->group->at,
                        "group \"console\" needs a group \"http\", which says where: http = { listen = \"127.0.0.1:9464\"; };");
    else if (config->console.write && !config->http.token)
        wb_problems_add(r->problems, WB_LOG_ERROR, place_of(r, "write"),
                        "option \"console.write\" = true needs http.token: every user of this host could retry and archive; set it, "
                        "or leave write out");
}

void wb_config_read_console(wb_config *config, const wb_conf_node *root, wb_problems *problems)
{
    const wb_config_section *table = &wb_config_sections[WB_SECTION_CONSOLE];
    const reading r = { config, problems, wb_conf_child(root, "console") };
    const wb_option_scope scope = { &config->arena, &config->secrets, problems, "group \"console\": ", NULL };
    if (!r.group)
        return;
    config->console.at = r.group->at;
    (void)wb_options_parse(&scope, table->options, table->option_count, sizeof *table->options, r.group, r.group->at, config,
                           NULL);
    check_console(&r);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/http/ask.h"

#ifdef HAVE_LIBMICROHTTPD

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/config/config_http.h"

/* So long for each step. */
#define PATIENCE_SECONDS 10
#define ANSWER_MAX (16u * 1024 * 1024)

typedef struct {
    const wb_http_config *config;
    int fd; /* -1: not open */
    gnutls_certificate_credentials_t credentials; /* NULL: no TLS */
    gnutls_session_t session;
    wb_error *error;
} asking;

static int fail(const asking *a, int result, const char *what, const char *why)
{
    return wb_error_set(a->error, result, WB_CAUSE_OTHER, errno, "%s %s: %s", what, a->config->listen, why);
}

/* ---- the connection ---------------------------------------------------------------------- */

/* One that listens on all addresses listens on the loopback's, too. */
static void prefer_loopback(struct sockaddr_storage *address)
{
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr))
        six->sin6_addr = in6addr_loopback;
    else if (address->ss_family == AF_INET && four->sin_addr.s_addr == htonl(INADDR_ANY))
        four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static int connect_plain(asking *a)
{
    const struct timeval patience = { PATIENCE_SECONDS, 0 };
    struct sockaddr_storage address;
    socklen_t size = 0;
    (void)wb_http_parse_address(a->config->listen, &address, &size); /* it was checked */
    prefer_loopback(&address);
    a->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (a->fd < 0)
        return fail(a, WB_FATAL, "cannot ask", strerror(errno));
    (void)setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(a->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(a->fd, (const struct sockaddr *)&address, size) != 0)
        return fail(a, WB_NOT_CONNECTED, "nobody answers at", strerror(errno));
    return WB_OK;
}

/* Nobody but the certificate's owner is trusted, and its name need not be this host's. */
static int trust_own(asking *a)
{
    const gnutls_datum_t certificate = { (unsigned char *)(uintptr_t)a->config->certificate,
                                         (unsigned)strlen(a->config->certificate) };
    int code = gnutls_certificate_allocate_credentials(&a->credentials);
    if (code >= 0)
        code = gnutls_certificate_set_x509_trust_mem(a->credentials, &certificate, GNUTLS_X509_FMT_PEM);
    return code;
}

static int begin_tls(asking *a)
{
    int code = trust_own(a);
    if (code >= 0)
        code = gnutls_init(&a->session, GNUTLS_CLIENT);
    if (code >= 0)
        code = gnutls_set_default_priority(a->session);
    if (code >= 0)
        code = gnutls_credentials_set(a->session, GNUTLS_CRD_CERTIFICATE, a->credentials);
    if (code < 0)
        return fail(a, WB_FATAL, "cannot ask", gnutls_strerror(code));
    gnutls_session_set_verify_cert(a->session, NULL, 0);
    gnutls_transport_set_int(a->session, a->fd);
    gnutls_handshake_set_timeout(a->session, PATIENCE_SECONDS * 1000);
    do
        code = gnutls_handshake(a->session);
    while (code < 0 && !gnutls_error_is_fatal(code));
    return code < 0 ? fail(a, WB_NOT_CONNECTED, "no TLS with", gnutls_strerror(code)) : WB_OK;
}

static void close_connection(asking *a)
{
    if (a->session)
        gnutls_deinit(a->session);
    if (a->credentials)
        gnutls_certificate_free_credentials(a->credentials);
    if (a->fd >= 0)
        (void)close(a->fd);
}

/* ---- question and answer ----------------------------------------------------------------- */

static int send_all(const asking *a, const char *data, size_t size)
{
    while (size) {
        ssize_t sent = a->session ? gnutls_record_send(a->session, data, size) : send(a->fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return fail(a, WB_NOT_CONNECTED, "nobody listens at", a->session ? gnutls_strerror((int)sent) : strerror(errno));
        data += sent;
        size -= (size_t)sent;
    }
    return WB_OK;
}

static int send_question(const asking *a, const char *path)
{
    char text[1024];
    const char *token = a->config->token;
    int size = snprintf(text, sizeof text, "GET %s HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n%s%s%s\r\n", path,
                        token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "");
    return send_all(a, text, (size_t)size);
}

static int receive_all(const asking *a, wb_buffer *answer)
{
    char data[16384];
    for (;;) {
        ssize_t size = a->session ? gnutls_record_recv(a->session, data, sizeof data) : recv(a->fd, data, sizeof data, 0);
        if (size == 0 || (a->session && size == GNUTLS_E_PREMATURE_TERMINATION))
            return WB_OK;
        if (size < 0)
            return fail(a, WB_NOT_CONNECTED, "no answer from", a->session ? gnutls_strerror((int)size) : strerror(errno));
        wb_buffer_put(answer, data, (size_t)size);
        if (answer->size > ANSWER_MAX)
            return fail(a, WB_FATAL, "cannot take the answer of", "it is too long");
    }
}

/* "HTTP/1.1 200 OK", headers, an empty line, the text: only that is kept. */
static int split(const asking *a, wb_buffer *answer, unsigned *ret_status)
{
    wb_buffer_put(answer, "", 1);
    const char *all = (const char *)answer->data, *text = strstr(all, "\r\n\r\n");
    if (!text || sscanf(all, "HTTP/1.%*1[01] %3u", ret_status) != 1)
        return fail(a, WB_FATAL, "cannot read the answer of", "it is no HTTP");
    text += 4;
    answer->size -= (size_t)(text - all) + 1;
    memmove(answer->data, text, answer->size + 1);
    return WB_OK;
}

int wb_http_ask(const wb_http_config *config, const char *path, unsigned *ret_status, wb_buffer *text, wb_error *error)
{
    asking a = { .config = config, .fd = -1, .error = error };
    int r = connect_plain(&a);
    if (r == WB_OK && config->key)
        r = begin_tls(&a);
    if (r == WB_OK)
        r = send_question(&a, path);
    if (r == WB_OK)
        r = receive_all(&a, text);
    close_connection(&a);
    return r == WB_OK ? split(&a, text, ret_status) : r;
}

#else /* a configuration that says where is refused before (core/config/config_http.c) */

int wb_http_ask(const wb_http_config *config, const char *path, unsigned *ret_status, wb_buffer *text, wb_error *error)
{
    (void)config, (void)path, (void)ret_status, (void)text;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0, "this waybill was built without libmicrohttpd");
}

#endif

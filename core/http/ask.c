/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/http/ask.h"

#ifdef HAVE_LIBMICROHTTPD

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/config/config_http.h"

/* So long for all of it. */
#define PATIENCE (10 * WB_SECOND)
#define ANSWER_MAX (16u * 1024 * 1024)

typedef struct {
    const wb_http_config *config;
    int64_t until; /* monotonic */
    int fd; /* does not block; -1: not open */
    gnutls_certificate_credentials_t credentials; /* NULL: no TLS */
    gnutls_session_t session;
    wb_error *error;
} asking;

static int fail(const asking *a, int result, const char *what, const char *why)
{
    return wb_error_set(a->error, result, WB_CAUSE_OTHER, errno, "%s %s: %s", what, a->config->listen, why);
}

/* Until it can be read or written: POLLIN, POLLOUT. */
static int await(const asking *a, short what)
{
    struct pollfd one = { a->fd, what, 0 };
    int found;
    do {
        const int64_t left = a->until - wb_clock_monotonic();
        found = left > 0 ? poll(&one, 1, (int)(left / WB_MILLISECOND) + 1) : 0;
        errno = found ? errno : ETIMEDOUT;
    } while (found < 0 && errno == EINTR);
    return found > 0 ? WB_OK : fail(a, WB_NOT_CONNECTED, "no answer from", strerror(errno));
}

/* Nothing was done, and nothing is wrong: with TLS 1.3, what comes first is no answer, but tickets for another session. */
static int is_for_later(const asking *a, ssize_t code)
{
    if (a->session)
        return code < 0 && !gnutls_error_is_fatal((int)code);
    return code < 0 && (errno == EAGAIN || errno == EINTR);
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
    struct sockaddr_storage address;
    int code;
    socklen_t size = 0, code_size = sizeof code;
    (void)wb_http_parse_address(a->config->listen, &address, &size); /* it was checked */
    prefer_loopback(&address);
    a->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0)
        return fail(a, WB_FATAL, "cannot ask", strerror(errno));
    code = connect(a->fd, (const struct sockaddr *)&address, size) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
        if (await(a, POLLOUT) != WB_OK)
            return WB_NOT_CONNECTED;
        (void)getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &code, &code_size);
    }
    errno = code;
    return code ? fail(a, WB_NOT_CONNECTED, "nobody answers at", strerror(code)) : WB_OK;
}

/* Nobody but the certificate's owner gets the token: not who has another of the same authority, and neither name nor
 * date matter. That who answers has its key, too, the handshake showed. */
static int is_pinned(const asking *a)
{
    const gnutls_datum_t text = { (unsigned char *)(uintptr_t)a->config->certificate, (unsigned)strlen(a->config->certificate) };
    gnutls_datum_t own;
    unsigned count = 0;
    const gnutls_datum_t *peers = gnutls_certificate_get_peers(a->session, &count);
    if (!peers || !count || gnutls_pem_base64_decode2("CERTIFICATE", &text, &own) < 0)
        return 0;
    const int is_same = own.size == peers[0].size && memcmp(own.data, peers[0].data, own.size) == 0;
    gnutls_free(own.data);
    return is_same;
}

static int shake_hands(asking *a)
{
    int code;
    while ((code = gnutls_handshake(a->session)) < 0) {
        if (!is_for_later(a, code))
            return fail(a, WB_NOT_CONNECTED, "no TLS with", gnutls_strerror(code));
        int r = await(a, gnutls_record_get_direction(a->session) ? POLLOUT : POLLIN);
        if (r != WB_OK)
            return r;
    }
    return is_pinned(a) ? WB_OK : fail(a, WB_NOT_CONNECTED, "no TLS with", "it has another certificate than tls_cert_file");
}

static int begin_tls(asking *a)
{
    int code = gnutls_certificate_allocate_credentials(&a->credentials);
    if (code >= 0)
        code = gnutls_init(&a->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (code >= 0)
        code = gnutls_set_default_priority(a->session);
    if (code >= 0)
        code = gnutls_credentials_set(a->session, GNUTLS_CRD_CERTIFICATE, a->credentials);
    if (code < 0)
        return fail(a, WB_FATAL, "cannot ask", gnutls_strerror(code));
    gnutls_transport_set_int(a->session, a->fd);
    return shake_hands(a);
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
        int r = await(a, POLLOUT);
        if (r != WB_OK)
            return r;
        ssize_t sent = a->session ? gnutls_record_send(a->session, data, size) : send(a->fd, data, size, MSG_NOSIGNAL);
        if (is_for_later(a, sent))
            continue;
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
        int r = a->session && gnutls_record_check_pending(a->session) ? WB_OK : await(a, POLLIN);
        if (r != WB_OK)
            return r;
        ssize_t size = a->session ? gnutls_record_recv(a->session, data, sizeof data) : recv(a->fd, data, sizeof data, 0);
        if (size == 0 || (a->session && size == GNUTLS_E_PREMATURE_TERMINATION))
            return WB_OK;
        if (is_for_later(a, size))
            continue;
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
    asking a = { .config = config, .until = wb_clock_monotonic() + PATIENCE, .fd = -1, .error = error };
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

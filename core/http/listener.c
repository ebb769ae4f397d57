/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/http/listener.h"

#ifdef HAVE_LIBMICROHTTPD

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alarm.h"
#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/config/config_http.h"
#include "core/http/answers.h"
#include "core/http/console.h"
#include "core/http/stream.h"

#define BACKLOG 64
/* Between two looks at who takes too long, and whether a second of the streams is over. */
#define LOOK_EVERY (100 * WB_MILLISECOND)
#define CIPHERS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* A connection, from its begin or its last answer on. */
typedef struct {
    int fd; /* -1: none */
    int64_t since;
} client;

/* A question and its answer. */
typedef struct {
    wb_buffer body;    /* what came behind the headers, as far as it is wanted */
    size_t body_max;   /* so much is; 0: nothing */
    int is_too_long;
    wb_errand *errand; /* that was given to the desk; NULL: none was */
} exchange;

struct wb_listener {
    const wb_http_config *config;
    wb_board *board;
    wb_console *console; /* NULL: there is none */
    wb_streams *streams; /* likewise */
    char cookie[24];     /* what ours is called: other processes of this host have others, whose ports browsers do not tell apart */
    struct MHD_Daemon *daemon;
    pthread_t looker;
    wb_alarm ending; /* ends the looker's sleep */
    atomic_int is_over;
    pthread_mutex_t lock; /* guards clients: nobody shuts down what is closed, and somebody else's by now */
    client clients[WB_HTTP_CONNECTIONS];
};

/* ---- who asks ---------------------------------------------------------------------------- */

static client *find_client(wb_listener *listener, int fd)
{
    for (size_t i = 0; i < WB_HTTP_CONNECTIONS; i++)
        if (listener->clients[i].fd == fd)
            return &listener->clients[i];
    return NULL;
}

static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/* The library calls this before it closes the socket. */
static void note_connection(void *argument, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode what)
{
    wb_listener *listener = argument;
    const int fd = fd_of(connection), has_begun = what == MHD_CONNECTION_NOTIFY_STARTED;
    (void)context;
    pthread_mutex_lock(&listener->lock);
    client *one = find_client(listener, has_begun ? -1 : fd);
    if (one)
        *one = (client){ has_begun ? fd : -1, wb_clock_monotonic() };
    pthread_mutex_unlock(&listener->lock);
}

static void free_exchange(exchange *x)
{
    if (!x)
        return;
    wb_errand_free(x->errand);
    wb_buffer_free(&x->body);
    free(x);
}

static void note_answered(void *argument, struct MHD_Connection *connection, void **context,
                          enum MHD_RequestTerminationCode how)
{
    wb_listener *listener = argument;
    free_exchange(*context);
    *context = NULL;
    pthread_mutex_lock(&listener->lock);
    client *one = find_client(listener, fd_of(connection));
    if (one && how == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        one->since = wb_clock_monotonic();
    pthread_mutex_unlock(&listener->lock);
}

/* ---- who takes too long ------------------------------------------------------------------ */

/* The library's own limit begins anew with each byte. */
static void cut_off(wb_listener *listener, int64_t now)
{
    pthread_mutex_lock(&listener->lock);
    for (size_t i = 0; i < WB_HTTP_CONNECTIONS; i++) {
        client *one = &listener->clients[i];
        if (one->fd >= 0 && now - one->since > wb_test_period(WB_HTTP_LONGEST_SECONDS * WB_SECOND))
            (void)shutdown(one->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&listener->lock);
}

/* A thread, since the library's has no clock for others, and who starts endpoints waits for their servers, perhaps for long. */
static void *look(void *argument)
{
    wb_listener *listener = argument;
    while (!atomic_load(&listener->is_over)) {
        const int64_t now = wb_clock_monotonic();
        cut_off(listener, now);
        if (listener->streams)
            wb_streams_look(listener->streams, now);
        wb_alarm_sleep(&listener->ending, INT64_MIN, LOOK_EVERY);
    }
    return NULL;
}

static int start_looking(wb_listener *listener)
{
    return pthread_create(&listener->looker, NULL, look, listener) == 0;
}

static void end_looking(wb_listener *listener)
{
    atomic_store(&listener->is_over, 1);
    wb_alarm_ring(&listener->ending);
    pthread_join(listener->looker, NULL);
}

/* ---- what is answered -------------------------------------------------------------------- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

/* Nothing but what we send is shown, run or asked for, nowhere but on our own page, and no text becomes markup. */
static void add_page_headers(struct MHD_Response *response)
{
    add_header(response, "Content-Security-Policy",
               "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
               "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'");
    add_header(response, "X-Frame-Options", "DENY");
    add_header(response, "Referrer-Policy", "no-referrer");
    add_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    add_header(response, "Cross-Origin-Resource-Policy", "same-origin");
}

static void add_cookie(struct MHD_Response *response, const wb_listener *listener, const char *value)
{
    char text[200];
    (void)snprintf(text, sizeof text, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", listener->cookie, value,
                   listener->config->key ? "; Secure" : "", *value ? "" : "; Max-Age=0");
    add_header(response, "Set-Cookie", text);
}

static void add_headers(struct MHD_Response *response, const wb_listener *listener, const wb_answer *answer)
{
    add_header(response, "Content-Type", answer->type);
    add_header(response, "Cache-Control", "no-store");
    add_header(response, "X-Content-Type-Options", "nosniff");
    if (answer->is_page)
        add_page_headers(response);
    if (answer->is_file)
        add_header(response, "Content-Disposition", "attachment");
    if (answer->cookie)
        add_cookie(response, listener, answer->cookie);
    if (answer->status == 401 && !answer->is_page)
        add_header(response, "WWW-Authenticate", "Bearer");
    if (answer->status == 405)
        add_header(response, "Allow", "GET, HEAD");
}

/* The text is the response's from now on. */
static struct MHD_Response *make_response(wb_answer *answer)
{
    struct MHD_Response *response =
        answer->lasting ? MHD_create_response_from_buffer(answer->lasting_size, (void *)(uintptr_t)answer->lasting, MHD_RESPMEM_PERSISTENT)
                        : MHD_create_response_from_buffer(answer->text.size, answer->text.data, MHD_RESPMEM_MUST_FREE);
    if (response)
        answer->text = (wb_buffer){ 0 };
    return response;
}

static enum MHD_Result queue(struct MHD_Connection *connection, struct MHD_Response *response, const wb_listener *listener,
                             const wb_answer *answer)
{
    add_headers(response, listener, answer);
    enum MHD_Result r = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return r;
}

static enum MHD_Result send_answer(const wb_listener *listener, struct MHD_Connection *connection, wb_answer *answer)
{
    struct MHD_Response *response = make_response(answer);
    if (response)
        return queue(connection, response, listener, answer);
    wb_answer_free(answer);
    return MHD_NO;
}

static enum MHD_Result send_stream(const wb_listener *listener, struct MHD_Connection *connection, wb_answer *answer)
{
    struct MHD_Response *response = wb_streams_open(listener->streams, connection);
    if (response)
        return queue(connection, response, listener, answer);
    wb_answer_refuse(answer, 503, "too many look on at once");
    return send_answer(listener, connection, answer);
}

static void wake(void *connection)
{
    MHD_resume_connection(connection);
}

/* The connection is put aside until the desk has an answer; then the library asks again. */
static enum MHD_Result wait_for_desk(const wb_listener *listener, struct MHD_Connection *connection, wb_errand *errand, exchange *x)
{
    x->errand = errand;
    errand->tell = wake;
    errand->argument = connection;
    MHD_suspend_connection(connection);
    wb_desk_give(listener->console->desk, errand);
    return MHD_YES;
}

static enum MHD_Result take_given(void *argument, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)json_object_set_new(argument, name, json_string(value ? value : ""));
    return MHD_YES;
}

static void write_address(struct MHD_Connection *connection, char text[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    const void *number = !address                          ? NULL
                         : address->sa_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr
                                                          : (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (!number || !inet_ntop(address->sa_family, number, text, INET6_ADDRSTRLEN))
        *text = '\0';
}

static wb_question read_question(const wb_listener *listener, struct MHD_Connection *connection, const char *url, const char *method,
                                 const char *address)
{
    return (wb_question){ .method = method,
                          .path = url,
                          .host = header(connection, "Host"),
                          .authorization = header(connection, "Authorization"),
                          .token = listener->config->token,
                          .cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, listener->cookie),
                          .origin = header(connection, "Origin"),
                          .site = header(connection, "Sec-Fetch-Site"),
                          .page_token = header(connection, "X-Waybill-Token"),
                          .address = address,
                          .is_tls = listener->config->key != NULL,
                          .now = wb_clock_monotonic() };
}

static enum MHD_Result answer_question(wb_listener *listener, struct MHD_Connection *connection, const wb_question *question,
                                       exchange *x)
{
    wb_answer what = { 0 };
    wb_answer_make(question, listener->board, listener->console, &what);
    if (what.errand)
        return wait_for_desk(listener, connection, what.errand, x);
    return what.is_stream ? send_stream(listener, connection, &what) : send_answer(listener, connection, &what);
}

static exchange *begin_exchange(const wb_listener *listener, struct MHD_Connection *connection, const char *url, const char *method)
{
    exchange *x = wb_alloc_zero(1, sizeof *x);
    const wb_question question = read_question(listener, connection, url, method, NULL);
    x->body_max = listener->console ? wb_console_body_max(listener->console, &question) : 0;
    return x;
}

/* @return whether there is more to come. */
static int read_body(exchange *x, const char *data, size_t *size)
{
    const int has_more = *size != 0;
    x->is_too_long |= x->body.size + *size > x->body_max;
    if (x->is_too_long)
        wb_buffer_free(&x->body);
    else
        wb_buffer_put(&x->body, data, *size);
    *size = 0;
    return has_more;
}

static json_t *take_sent(exchange *x)
{
    json_t *given = x->is_too_long ? NULL : json_loadb((const char *)x->body.data, x->body.size, JSON_REJECT_DUPLICATES, NULL);
    wb_buffer_free(&x->body);
    return given;
}

/* The library calls it once for the headers, again and again for what comes behind them, and when the connection was put aside. Only
 * what is wanted is waited for. */
static enum MHD_Result answer(void *argument, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context)
{
    wb_listener *listener = argument;
    exchange *x = *context;
    char address[INET6_ADDRSTRLEN];
    (void)version;
    if (x && x->errand)
        return send_answer(listener, connection, &x->errand->answer);
    const int is_new = !x;
    if (is_new)
        x = *context = begin_exchange(listener, connection, url, method);
    if (x->body_max && (is_new || read_body(x, data, size)))
        return MHD_YES;
    write_address(connection, address);
    wb_question question = read_question(listener, connection, url, method, address);
    json_t *given = x->body_max ? take_sent(x) : json_object();
    if (!x->body_max)
        (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_given, given);
    question.given = given;
    question.exceeded = x->is_too_long ? x->body_max : 0;
    enum MHD_Result r = answer_question(listener, connection, &question, x);
    json_decref(given);
    return r;
}

/* ---- begin and end ----------------------------------------------------------------------- */

static int refuse(wb_error *error, const wb_http_config *config, int cause, int code, const char *what)
{
    return wb_error_set(error, WB_FATAL, cause, code, "%s:%d: option \"http.listen\" = \"%s\": %s", config->at.file,
                        config->at.line, config->listen, what);
}

static int open_socket(const wb_http_config *config, int *ret_fd, wb_error *error)
{
    struct sockaddr_storage address;
    socklen_t size = 0;
    const int yes = 1;
    (void)wb_http_parse_address(config->listen, &address, &size); /* it was checked */
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *ret_fd = fd;
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, size) == 0 && listen(fd, BACKLOG) == 0)
        return WB_OK;
    const int code = errno;
    if (fd >= 0)
        (void)close(fd);
    return refuse(error, config, WB_CAUSE_OTHER, code, strerror(code));
}

/* What clients do wrong is no line of ours. */
WB_PRINTF(2, 0) static void log_quietly(void *argument, const char *format, va_list arguments)
{
    char text[400];
    (void)argument;
    (void)vsnprintf(text, sizeof text, format, arguments);
    wb_log_event(WB_LOG_DEBUG, "http", { "reason", text });
}

static unsigned idle_seconds(void)
{
    const int64_t seconds = wb_test_period(WB_HTTP_IDLE_SECONDS * WB_SECOND) / WB_SECOND;
    return seconds > 0 ? (unsigned)seconds : 1;
}

static struct MHD_Daemon *start_daemon(wb_listener *listener, int fd)
{
    const wb_http_config *config = listener->config;
    const struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)config->certificate },
                                          { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)config->key },
                                          { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)CIPHERS },
                                          { MHD_OPTION_END, 0, NULL } };
    const struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
    const unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG |
                           MHD_ALLOW_SUSPEND_RESUME | (config->key ? (unsigned)MHD_USE_TLS : 0u);
    return MHD_start_daemon(flags, 0, NULL, NULL, answer, listener, MHD_OPTION_EXTERNAL_LOGGER, log_quietly, NULL,
                            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)WB_HTTP_CONNECTIONS,
                            MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)WB_HTTP_CONNECTIONS_OF_ONE,
                            MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds(),
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)WB_HTTP_REQUEST_MAX, MHD_OPTION_NOTIFY_CONNECTION,
                            note_connection, listener, MHD_OPTION_NOTIFY_COMPLETED, note_answered, listener,
                            MHD_OPTION_ARRAY, config->key ? tls : none, MHD_OPTION_END);
}

static wb_listener *make(const wb_http_config *config, wb_board *board, wb_console *console)
{
    wb_listener *listener = wb_alloc_zero(1, sizeof *listener);
    listener->config = config;
    listener->board = board;
    listener->console = console;
    listener->streams = console ? wb_streams_make(board) : NULL;
    (void)snprintf(listener->cookie, sizeof listener->cookie, "waybill-%.8s", strrchr(config->listen, ':') + 1);
    wb_alarm_init(&listener->ending);
    pthread_mutex_init(&listener->lock, NULL);
    for (size_t i = 0; i < WB_HTTP_CONNECTIONS; i++)
        listener->clients[i].fd = -1;
    return listener;
}

static void discard(wb_listener *listener)
{
    wb_streams_free(listener->streams);
    wb_alarm_free(&listener->ending);
    pthread_mutex_destroy(&listener->lock);
    free(listener);
}

int wb_listener_start(const wb_http_config *config, wb_board *board, wb_console *console, wb_listener **ret_listener, wb_error *error)
{
    int fd = -1;
    *ret_listener = NULL;
    if (config->key && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return refuse(error, config, WB_CAUSE_CONFIG, 0, "this libmicrohttpd has no TLS");
    int r = open_socket(config, &fd, error);
    if (r != WB_OK)
        return r;
    wb_listener *listener = make(config, board, console);
    if (!start_looking(listener)) {
        (void)close(fd);
        discard(listener);
        return refuse(error, config, WB_CAUSE_OTHER, 0, "no thread could be started");
    }
    listener->daemon = start_daemon(listener, fd);
    if (listener->daemon) {
        *ret_listener = listener;
        return WB_OK;
    }
    (void)close(fd);
    end_looking(listener);
    discard(listener);
    return refuse(error, config, WB_CAUSE_CONFIG, 0,
                  config->key ? "certificate and key are of no use, or do not belong together" : "no thread could be started");
}

/* The library wants nobody to be put aside when it ends. */
void wb_listener_stop(wb_listener *listener)
{
    if (!listener)
        return;
    end_looking(listener);
    if (listener->console) {
        wb_desk_close(listener->console->desk);
        wb_streams_end(listener->streams);
    }
    MHD_stop_daemon(listener->daemon);
    discard(listener);
}

#else /* a configuration that asks for one is refused before (core/config/config_http.c) */

int wb_listener_start(const wb_http_config *config, wb_board *board, wb_console *console, wb_listener **ret_listener, wb_error *error)
{
    (void)config, (void)board, (void)console;
    *ret_listener = NULL;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0, "this waybill was built without libmicrohttpd");
}

void wb_listener_stop(wb_listener *listener)
{
    (void)listener;
}

#endif

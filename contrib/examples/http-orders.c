/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTTP service with transactional sessions. POST /orders writes an order and publishes the event
 * that tells of it: both or neither, once per Idempotency-Key, however often a client repeats.
 *
 *   cc http-orders.c $(pkg-config --cflags --libs libwaybill libmicrohttpd jansson libpq) -o http-orders
 *   psql -f http-orders.sql && waybill install -c http-orders.conf
 *   ./http-orders http-orders.conf 8080 & waybill run -c http-orders.conf &
 *   curl -H 'Idempotency-Key: 4711' -d '{"item":"tea","quantity":2}' http://localhost:8080/orders
 *
 *   201  placed                     {"number":1}
 *   200  was placed before          the same
 *   400, 404, 405, 413, 422         the request is wrong; 422: its key belongs to another order
 *   503  not placed, or not known   repeat it with the same key
 *
 * `waybill run` sends what a service that died left behind. SIGTERM ends the service: requests
 * under way are answered, what was committed leaves.
 */
#include <arpa/inet.h>
#include <jansson.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <waybill/pgsql.h>
#include <waybill/session.h>

#define THREADS 8 /* session.connections of http-orders.conf */
#define BODY_MAX 65536
#define KEY_MAX 200
#define INSERT "insert into shop_order (key, request) values ($1, $2) returning number"
#define SELECT "select number, request = $2::jsonb from shop_order where key = $1"
#define REPEAT "repeat the request with the same Idempotency-Key"

/* A request, while its body arrives. */
typedef struct request {
    char body[BODY_MAX + 1];
    size_t size; /* of all that came, even if it is more than that */
} request;

static wb_endpoint *shop;
static atomic_int requests; /* under way */
static atomic_int is_ending;

/* ---- answers --------------------------------------------------------------------------- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    struct MHD_Response *response = MHD_create_response_from_buffer(text ? strlen(text) : 0, text, MHD_RESPMEM_MUST_FREE);
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        (void)MHD_add_response_header(response, "Retry-After", "1");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, "Allow", "POST");
    if (is_ending)
        (void)MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    json_decref(body);
    return queued;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *reason)
{
    return answer(connection, status, json_pack("{s:s}", "error", reason));
}

/* ---- orders ----------------------------------------------------------------------------- */

typedef struct order {
    const char *key;
    char *request;       /* JSON, as it is stored */
    json_int_t number;   /* what the database calls it */
} order;

/* The service's log has the reason; clients need not know it. */
static unsigned unavailable(const order *o, const wb_reason *reason)
{
    fprintf(stderr, "order %s: %s\n", o->key, reason->text);
    return MHD_HTTP_SERVICE_UNAVAILABLE;
}

/* What this does with the context is what a handler would do. */
static int place(wb_context *ctx, order *o)
{
    PGconn *db = wb_pgsql(ctx);
    if (!db)
        return wb_fail(ctx, WB_RETRY, "the database is away");
    PGresult *rows = PQexecParams(db, INSERT, 2, NULL, (const char *const[]){ o->key, o->request }, NULL, NULL, 0);
    const int is_placed = PQresultStatus(rows) == PGRES_TUPLES_OK;
    const char *code = PQresultErrorField(rows, PG_DIAG_SQLSTATE); /* the message may quote the order */
    int result = WB_OK;
    if (is_placed)
        o->number = strtoll(PQgetvalue(rows, 0, 0), NULL, 10);
    else
        result = wb_fail(ctx, WB_RETRY, "could not write the order: SQLSTATE %s", code ? code : "unknown");
    PQclear(rows);
    if (result != WB_OK)
        return result;
    char event[64];
    int size = snprintf(event, sizeof event, "{\"number\":%lld}", (long long)o->number);
    return wb_publish(ctx, &(wb_outgoing){ .type = "Shop.OrderPlaced", .body = event, .body_size = (size_t)size });
}

/* What failed in place() fails in the commit. Clients choose the key, not the whole id: it must be no message's, nor
 * that of another kind of request. */
static int commit_order(order *o, wb_reason *reason)
{
    wb_session *session;
    char id[KEY_MAX + 8];
    (void)snprintf(id, sizeof id, "orders/%s", o->key);
    const wb_session_options options = { .id = id, .id_size = WB_TEXT };
    int result = wb_session_open(shop, &options, sizeof options, &session, reason);
    if (result != WB_OK)
        return result;
    (void)place(wb_session_context(session), o);
    result = wb_session_commit(session, reason);
    wb_session_close(session);
    return result;
}

/* What became of the key before. A session that is closed without a commit is a way to read, too.
 * @return the status, 0: there is no such order. */
static unsigned find_order(order *o, wb_reason *reason)
{
    wb_session *session;
    unsigned status = MHD_HTTP_SERVICE_UNAVAILABLE;
    if (wb_session_open(shop, NULL, 0, &session, reason) != WB_OK)
        return unavailable(o, reason);
    PGconn *db = wb_pgsql(wb_session_context(session));
    PGresult *rows = db ? PQexecParams(db, SELECT, 2, NULL, (const char *const[]){ o->key, o->request }, NULL, NULL, 0) : NULL;
    if (PQresultStatus(rows) == PGRES_TUPLES_OK && PQntuples(rows) == 0) {
        status = 0;
    } else if (PQresultStatus(rows) == PGRES_TUPLES_OK) {
        o->number = strtoll(PQgetvalue(rows, 0, 0), NULL, 10);
        status = *PQgetvalue(rows, 0, 1) == 't' ? MHD_HTTP_OK : MHD_HTTP_UNPROCESSABLE_CONTENT;
    }
    PQclear(rows);
    wb_session_close(session);
    return status;
}

/* The outbox remembers a key for its retention; the table, whose key it is, for ever. So whatever failed for
 * sure, the order may be there. A commit in doubt may still come: only a repetition will tell. */
static unsigned place_order(order *o)
{
    wb_reason reason;
    int result = commit_order(o, &reason);
    if (result == WB_OK)
        return MHD_HTTP_CREATED;
    if (result == WB_IN_DOUBT || result == WB_NOT_CONNECTED)
        return unavailable(o, &reason);
    unsigned status = find_order(o, &(wb_reason){ 0 });
    return status ? status : unavailable(o, &reason);
}

/* ---- requests ---------------------------------------------------------------------------- */

static int is_order(const json_t *value)
{
    const json_t *quantity = json_object_get(value, "quantity");
    return json_string_length(json_object_get(value, "item")) > 0 && json_is_integer(quantity) && json_integer_value(quantity) > 0;
}

static enum MHD_Result post_order(struct MHD_Connection *connection, const char *key, const request *r)
{
    json_t *value = json_loadb(r->body, r->size, JSON_REJECT_DUPLICATES, NULL);
    if (!is_order(value)) {
        json_decref(value);
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "an order is {\"item\": TEXT, \"quantity\": NUMBER}");
    }
    order o = { .key = key, .request = json_dumps(value, JSON_COMPACT) };
    unsigned status = o.request ? place_order(&o) : MHD_HTTP_SERVICE_UNAVAILABLE;
    free(o.request);
    json_decref(value);
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        return refuse(connection, status, REPEAT);
    if (status == MHD_HTTP_UNPROCESSABLE_CONTENT)
        return refuse(connection, status, "this Idempotency-Key belongs to another order");
    return answer(connection, status, json_pack("{s:I}", "number", o.number));
}

static int is_key(const char *key)
{
    const size_t size = key ? strlen(key) : 0;
    for (size_t i = 0; i < size; i++)
        if (key[i] < '!' || key[i] > '~')
            return 0;
    return size > 0 && size <= KEY_MAX;
}

static enum MHD_Result respond(struct MHD_Connection *connection, const char *url, const char *method, const request *r)
{
    const char *key = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Idempotency-Key");
    if (strcmp(url, "/orders") != 0)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "there is /orders");
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "orders are posted");
    if (!is_key(key))
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "an Idempotency-Key of 1 to 200 visible characters is needed");
    if (r->size > BODY_MAX)
        return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "an order has at most 64 KiB");
    return post_order(connection, key, r);
}

/* Called first with nothing, then with each piece of the body, then once more. */
static enum MHD_Result handle(void *argument, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **state)
{
    request *r = *state;
    (void)argument, (void)version;
    if (!r) {
        *state = r = calloc(1, sizeof *r);
        if (r)
            requests++;
        return r ? MHD_YES : MHD_NO;
    }
    if (!*size)
        return respond(connection, url, method, r);
    if (r->size + *size <= BODY_MAX)
        memcpy(r->body + r->size, data, *size);
    r->size += *size;
    *size = 0;
    return MHD_YES;
}

static void end_request(void *argument, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code)
{
    (void)argument, (void)connection, (void)code;
    if (*state)
        requests--;
    free(*state);
    *state = NULL;
}

/* ---- the service ------------------------------------------------------------------------- */

static void write_log(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)level;
    fprintf(stderr, "%.*s\n", (int)size, line);
}

/* On this machine alone: who serves others has something in front. */
static struct MHD_Daemon *start(const char *port)
{
    const struct sockaddr_in local = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(flags, 0, NULL, NULL, handle, NULL, MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&local,
                            MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_TIMEOUT, 30u,
                            MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL, MHD_OPTION_END);
}

static void say_port(struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *bound = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("listening on port %u\n", bound ? (unsigned)bound->port : 0u);
    (void)fflush(stdout);
}

static int serve(const char *port, const sigset_t *signals)
{
    int number;
    struct MHD_Daemon *daemon = start(port);
    if (!daemon)
        return 1;
    say_port(daemon);
    (void)sigwait(signals, &number);
    is_ending = 1;
    (void)MHD_quiesce_daemon(daemon); /* the socket is closed with the process */
    while (requests > 0)
        (void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    MHD_stop_daemon(daemon);
    return 0;
}

int main(int argc, char **argv)
{
    sigset_t signals;
    wb_reason reason;
    wb_endpoint_options options = { .config = argc > 1 ? argv[1] : "http-orders.conf" };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* of all threads: main() waits for them */
    wb_log_to(write_log, NULL);
    if (wb_endpoint_open(&options, sizeof options, &shop, &reason) != WB_OK) {
        fprintf(stderr, "%s\n", reason.text);
        return 1;
    }
    int failed = serve(argc > 2 ? argv[2] : "8080", &signals);
    wb_endpoint_close(shop);
    return failed;
}

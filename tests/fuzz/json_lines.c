/* SPDX-License-Identifier: Apache-2.0
 *
 * `waybill send --json-lines`: the verb as it is, with an endpoint in its place that notes what is
 * sent. When it says that all was sent, each line is one message, with the id and the body that
 * stand there.
 */
#include "config.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/cli/cli.h"
#include "core/endpoint/endpoint.h"
#include "core/pipeline/window.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "json_lines";

#define MESSAGES_MAX 4096

static struct {
    char *ids[MESSAGES_MAX];
    char *bodies[MESSAGES_MAX];
    size_t body_sizes[MESSAGES_MAX];
    size_t count;
} sent;

/* ---- in the endpoint's place --------------------------------------------------------------- */

static wb_origin origin;
static wb_endpoint_setup endpoint;
static wb_setup setup = { .endpoints = &endpoint, .endpoint_count = 1 };

int cli_load(const cli_values *values, uint32_t flags, wb_setup **ret_setup)
{
    (void)values, (void)flags;
    *ret_setup = &setup;
    return EX_OK;
}

int cli_fail(int code, const char *format, ...)
{
    char text[2000];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return code;
}

const wb_endpoint_setup *cli_endpoint(const wb_setup *of, const char *name)
{
    (void)name;
    return &of->endpoints[0];
}

void wb_setup_free(wb_setup *freed)
{
    (void)freed;
}

int wb_endpoint_create(const wb_endpoint_setup *of, wb_endpoint **ret_endpoint, wb_error *error)
{
    (void)of, (void)error;
    *ret_endpoint = NULL;
    return WB_OK;
}

void wb_endpoint_destroy(wb_endpoint *destroyed)
{
    (void)destroyed;
}

int wb_endpoint_open_sender(wb_endpoint *of, wb_transport_session **ret_session, wb_error *error)
{
    (void)of, (void)error;
    *ret_session = NULL;
    return WB_OK;
}

int wb_endpoint_open_storage(wb_endpoint *of, wb_storage_session **ret_storage, wb_error *error)
{
    (void)of, (void)error;
    *ret_storage = NULL;
    return WB_OK;
}

const wb_origin *wb_endpoint_origin(const wb_endpoint *of)
{
    (void)of;
    return &origin;
}

static void check_operation(const wb_operation *operation)
{
    FUZZ_CHECK(operation->id_size && operation->id[operation->id_size] == '\0');
    FUZZ_CHECK(strcmp(operation->destination, "queue") == 0);
    FUZZ_CHECK(operation->header_count <= WB_OUTGOING_HEADERS_MAX + 20);
    for (size_t i = 0; i < operation->header_count; i++)
        FUZZ_CHECK(operation->headers[i].name_size && operation->headers[i].value);
}

int wb_endpoint_send(wb_endpoint *of, const wb_sender *sender, wb_window *window, int64_t deadline, wb_error *error)
{
    (void)of, (void)sender, (void)deadline, (void)error;
    for (size_t i = 0; i < window->count; i++) {
        wb_operation *operation = window->operations[i];
        check_operation(operation);
        if (sent.count < MESSAGES_MAX) {
            sent.ids[sent.count] = fuzz_copy(operation->id, operation->id_size);
            sent.bodies[sent.count] = fuzz_copy(operation->body, operation->body_size);
            sent.body_sizes[sent.count++] = operation->body_size;
        }
        operation->result = WB_OK;
    }
    return WB_OK;
}

/* ---- what each line is --------------------------------------------------------------------- */

static void check_line(size_t at, const char *line, size_t size)
{
    json_t *message = json_loadb(line, size, 0, NULL);
    const json_t *id = json_object_get(message, "id"), *body = json_object_get(message, "body");
    FUZZ_CHECK(json_is_object(message) && at < sent.count);
    FUZZ_CHECK(!json_is_string(id) || !json_string_length(id) || strcmp(json_string_value(id), sent.ids[at]) == 0);
    FUZZ_CHECK(!json_is_string(body) || fuzz_is_same(json_string_value(body), json_string_length(body),
                                                     sent.bodies[at], sent.body_sizes[at]));
    json_decref(message);
}

static void check_lines(const char *text, size_t size)
{
    const char *end = text + size;
    size_t count = 0;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)((stop ? stop : end) - line);
        if (length && count < MESSAGES_MAX)
            check_line(count, line, length);
        count += length > 0;
        line += length + (stop != NULL);
    }
    FUZZ_CHECK(count == sent.count || sent.count == MESSAGES_MAX);
}

void fuzz_one(const void *data, size_t size)
{
    static int file = -1;
    char path[40];
    cli_values values = { .value = { ['t'] = "Sales.PlaceOrder", ['d'] = "queue", ['l'] = path } };
    if (file < 0) {
        file = memfd_create("lines", MFD_CLOEXEC);
        origin = wb_origin_make("fuzz", 1, 1 << 20);
        FUZZ_CHECK(file >= 0 && freopen("/dev/null", "w", stdout)); /* it says how many were sent */
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    FUZZ_CHECK(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    sent.count = 0;
    if (cli_verb_send.run(&values) == EX_OK)
        check_lines(data, size);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Make a queue of the embedded transport and load it, through the plugin, as endpoints do:
 *
 *     load-sqlite PLUGIN.so OPTION=VALUE,... QUEUE MESSAGES
 *
 * A host of the smallest kind: it fills the plugin's options from their table and sends.
 */
#include "config.h"

#include "tests/bench/common.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sys/transport.h>

#define WINDOW 500
#define BODY_SIZE 1024

struct wb_error {
    char text[1000];
};

/* ---- the host ------------------------------------------------------------- */

static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...) WB_PRINTF(6, 7);
static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...)
{
    va_list arguments;
    (void)host, (void)cause, (void)native_code;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return result;
}

static void host_log(const wb_host *host, int level, const char *text, const wb_field *fields,
                     size_t count)
{
    (void)host, (void)fields, (void)count;
    if (level <= WB_LOG_WARNING)
        fprintf(stderr, "load-sqlite: %s\n", text);
}

static void host_crash_point(const char *name)
{
    (void)name;
}

static const wb_host host = { .struct_size = sizeof host,
                              .fail = host_fail,
                              .log = host_log,
                              .now = bench_now,
                              .crash_point = host_crash_point };

/* ---- options -------------------------------------------------------------- */

static int64_t scale(const char *unit)
{
    static const struct {
        const char *name;
        int64_t factor;
    } units[] = { { "", 1 },
                  { "ns", 1 },
                  { "us", 1000 },
                  { "ms", 1000000 },
                  { "s", 1000000000 },
                  { "min", INT64_C(60000000000) },
                  { "m", INT64_C(60000000000) },
                  { "h", INT64_C(3600000000000) },
                  { "d", INT64_C(86400000000000) },
                  { "B", 1 },
                  { "KiB", 1024 },
                  { "MiB", 1048576 },
                  { "GiB", 1073741824 } };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].factor;
    bench_die("unknown unit \"%s\"", unit);
}

static int64_t parse_amount(const char *text)
{
    char *unit = NULL;
    int64_t amount = strtoll(text, &unit, 10);
    return amount * scale(unit + strspn(unit, " "));
}

static int32_t parse_choice(const wb_option *option, const char *text)
{
    for (int32_t i = 0; option->choices[i]; i++)
        if (strcmp(option->choices[i], text) == 0)
            return i;
    bench_die("%s: \"%s\" is no choice", option->name, text);
}

static void set_option(const wb_option *option, char *config, const char *text)
{
    void *field = config + option->offset;
    if (option->type == WB_OPTION_STRING)
        memcpy(field, &text, sizeof text);
    else if (option->type == WB_OPTION_BOOLEAN)
        memcpy(field, &(int32_t){ strcmp(text, "true") == 0 }, sizeof(int32_t));
    else if (option->type == WB_OPTION_CHOICE)
        memcpy(field, &(int32_t){ parse_choice(option, text) }, sizeof(int32_t));
    else if (option->type == WB_OPTION_INTEGER || option->type == WB_OPTION_DURATION
             || option->type == WB_OPTION_SIZE)
        memcpy(field, &(int64_t){ parse_amount(text) }, sizeof(int64_t));
}

static const wb_option *option_at(const wb_plugin *plugin, size_t i)
{
    return (const wb_option *)((const char *)plugin->options + i * plugin->option_stride);
}

/* `settings` is "NAME=VALUE,..."; cut up and kept by the config. */
static void *make_config(const wb_plugin *plugin, char *settings)
{
    char *config = calloc(1, plugin->config_size + 1);
    if (!config)
        bench_die("out of memory");
    for (size_t i = 0; i < plugin->option_count; i++)
        if (option_at(plugin, i)->default_text)
            set_option(option_at(plugin, i), config, option_at(plugin, i)->default_text);
    for (char *pair = strtok(settings, ","); pair; pair = strtok(NULL, ",")) {
        char *value = strchr(pair, '=');
        size_t i = 0;
        if (!value)
            bench_die("\"%s\" is not OPTION=VALUE", pair);
        *value++ = '\0';
        while (i < plugin->option_count && strcmp(option_at(plugin, i)->name, pair) != 0)
            i++;
        if (i == plugin->option_count)
            bench_die("the plugin has no option \"%s\"", pair);
        set_option(option_at(plugin, i), config, value);
    }
    return config;
}

static const wb_plugin *load_plugin(const char *path)
{
    const wb_plugin *(*entry)(void);
    char symbol[128];
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        bench_die("%s", dlerror());
    snprintf(symbol, sizeof symbol, "%.*s_LTX_wb_plugin", (int)strcspn(name, "."), name);
    void *found = dlsym(library, symbol);
    if (!found)
        bench_die("%s", dlerror());
    memcpy(&entry, &found, sizeof entry);
    return entry();
}

/* ---- sending -------------------------------------------------------------- */

struct outgoing {
    wb_operation operation;
    wb_header headers[BENCH_HEADER_COUNT];
    char id[BENCH_ID_SIZE + 1], conversation_id[BENCH_ID_SIZE + 1];
    char time_sent[32];
    char body[BODY_SIZE];
};

static void fill(struct outgoing *outgoing, const char *queue, uint64_t salt, uint64_t number)
{
    const char *values[BENCH_HEADER_COUNT];
    bench_message_id(outgoing->id, salt, number);
    bench_message_id(outgoing->conversation_id, ~salt, number);
    bench_message_body(outgoing->body, BODY_SIZE, number);
    bench_header_values(&(struct bench_envelope){ .id = outgoing->id,
                                                  .conversation_id = outgoing->conversation_id,
                                                  .type = BENCH_INPUT_TYPE,
                                                  .endpoint = "bench.loader" },
                        outgoing->time_sent, values);
    for (int i = 0; i < BENCH_HEADER_COUNT; i++)
        outgoing->headers[i] = (wb_header){ .name = bench_header_names[i],
                                            .value = values[i],
                                            .name_size = strlen(bench_header_names[i]),
                                            .value_size = strlen(values[i]) };
    outgoing->operation = (wb_operation){ .struct_size = sizeof(wb_operation),
                                          .kind = WB_OPERATION_SEND,
                                          .flags = WB_OPERATION_MANDATORY,
                                          .destination = queue,
                                          .id = outgoing->id,
                                          .id_size = BENCH_ID_SIZE,
                                          .headers = outgoing->headers,
                                          .header_count = BENCH_HEADER_COUNT,
                                          .body = outgoing->body,
                                          .body_size = BODY_SIZE };
}

static void send_window(const wb_transport_ops *ops, wb_transport_session *session,
                        wb_operation **operations, size_t count)
{
    wb_error error = { "" };
    int64_t deadline = bench_now() + INT64_C(30000000000);
    if (ops->send(session, operations, count, deadline, &error) != WB_OK)
        bench_die("send: %s", error.text);
    for (size_t i = 0; i < count; i++)
        if (operations[i]->result != WB_OK)
            bench_die("refused: %s", operations[i]->reason ? operations[i]->reason : "");
}

static void send_all(const wb_transport_ops *ops, wb_transport_session *session,
                     const char *queue, uint64_t count)
{
    static struct outgoing window[WINDOW];
    wb_operation *operations[WINDOW];
    uint64_t salt = bench_wall_ms();
    for (uint64_t sent = 0; sent < count;) {
        size_t now = count - sent < WINDOW ? (size_t)(count - sent) : WINDOW;
        for (size_t i = 0; i < now; i++) {
            fill(&window[i], queue, salt, sent + i);
            operations[i] = &window[i].operation;
        }
        send_window(ops, session, operations, now);
        sent += now;
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("usage: load-sqlite PLUGIN.so OPTION=VALUE,... QUEUE MESSAGES\n", stderr);
        return 64;
    }
    const wb_plugin *plugin = load_plugin(argv[1]);
    const wb_transport_ops *ops = plugin->ops;
    wb_endpoint_info endpoint = { .struct_size = sizeof endpoint,
                                  .name = argv[3],
                                  .mode = WB_MODE_RECEIVE_ONLY,
                                  .concurrency = 1,
                                  .batch_max = WINDOW,
                                  .body_max = BODY_SIZE };
    wb_transport *transport = NULL;
    wb_transport_session *session = NULL;
    wb_error error = { "" };
    void *config = make_config(plugin, argv[2]);
    uint64_t count = bench_number("messages", argv[4], 0);
    if (ops->create(&host, &endpoint, config, &transport, &error) != WB_OK
        || ops->install(transport, &error) != WB_OK
        || ops->open(transport, WB_SESSION_SEND, 1, &session, &error) != WB_OK)
        bench_die("%s", error.text);
    send_all(ops, session, argv[3], count);
    ops->close(session);
    ops->destroy(transport);
    free(config);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Make a queue of the embedded transport and load it, through the plugin, as endpoints do:
 *
 *     load-sqlite PLUGIN.so OPTION=VALUE,... QUEUE MESSAGES
 */
#include "config.h"

#include "tests/bench/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sys/transport.h>

#include "tests/bench/plugin-host.h"

#define WINDOW 500
#define BODY_SIZE 1024

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
    const wb_plugin *plugin = bench_load_plugin(argv[1]);
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
    void *config = bench_plugin_config(plugin, argv[2]);
    uint64_t count = bench_number("messages", argv[4], 0);
    if (ops->create(&bench_host, &endpoint, config, &transport, &error) != WB_OK
        || ops->install(transport, &error) != WB_OK
        || ops->open(transport, WB_SESSION_SEND, 1, &session, &error) != WB_OK)
        bench_die("%s", error.text);
    send_all(ops, session, argv[3], count);
    ops->close(session);
    ops->destroy(transport);
    free(config);
    return 0;
}

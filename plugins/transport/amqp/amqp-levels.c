/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-levels.h"

#include <stdio.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-delay.h"
#include "plugins/transport/amqp/amqp-queue.h"
#include "plugins/transport/amqp/amqp-topology.h"

/* ---- single steps ---------------------------------------------------------------- */

static int declare_exchange(wb_amqp_connection *connection, const char *name)
{
    amqp_exchange_declare_t declare = { .exchange = amqp_cstring_bytes(name),
                                        .type = amqp_cstring_bytes("topic"),
                                        .durable = 1 };
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_SCRATCH, AMQP_EXCHANGE_DECLARE_METHOD, &declare,
                             AMQP_EXCHANGE_DECLARE_OK_METHOD);
    return result;
}

static amqp_table_entry_t text_entry(const char *name, const char *value)
{
    return (amqp_table_entry_t){
        amqp_cstring_bytes(name),
        { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value) }
    };
}

/* At least once: a message leaves a level when the next one, or its destination, has it. */
static int declare_queue(wb_amqp_connection *connection, unsigned level, const char *name,
                         const char *next)
{
    amqp_table_entry_t arguments[] = {
        text_entry("x-queue-type", "quorum"),
        text_entry("x-dead-letter-strategy", "at-least-once"),
        text_entry("x-overflow", "reject-publish"),
        { amqp_cstring_bytes("x-message-ttl"),
          { .kind = AMQP_FIELD_KIND_I64, .value.i64 = (INT64_C(1) << level) * 1000 } },
        text_entry("x-dead-letter-exchange", next),
    };
    amqp_queue_declare_t declare = { .queue = amqp_cstring_bytes(name),
                                     .durable = 1,
                                     .arguments = { sizeof arguments / sizeof *arguments, arguments } };
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_SCRATCH, AMQP_QUEUE_DECLARE_METHOD, &declare,
                             AMQP_QUEUE_DECLARE_OK_METHOD);
    return result;
}

static int was_forbidden(const wb_amqp_connection *connection, int result)
{
    return result == WB_REJECT && connection->channels[WB_AMQP_SCRATCH].code == AMQP_ACCESS_REFUSED;
}

static int exchange_exists(wb_amqp_connection *connection, const char *name)
{
    return wb_amqp_exchange_declare(connection, name, 1);
}

/* ---- all of them ------------------------------------------------------------------ */

static int note(int result, const char *what, const char *name, wb_amqp_level_part *ret_part)
{
    if (result != WB_OK) {
        ret_part->what = what;
        (void)snprintf(ret_part->name, sizeof ret_part->name, "%s", name);
    }
    return result;
}

/* Behind the lowest level is the delivery. */
static void name_next(unsigned level, char ret_name[WB_AMQP_NAME_SIZE])
{
    if (level)
        wb_amqp_level_name(level - 1, ret_name);
    else
        memcpy(ret_name, WB_AMQP_DELIVERY, sizeof WB_AMQP_DELIVERY);
}

static int make_level(wb_amqp_connection *connection, unsigned level, wb_amqp_level_part *ret_part)
{
    char name[WB_AMQP_NAME_SIZE], next[WB_AMQP_NAME_SIZE], key[WB_AMQP_NAME_SIZE];
    wb_amqp_level_name(level, name);
    name_next(level, next);
    int result = note(declare_exchange(connection, name), "exchange", name, ret_part);
    if (result == WB_OK)
        result = note(declare_queue(connection, level, name, next), "queue", name, ret_part);
    if (result != WB_OK)
        return result;
    wb_amqp_level_pattern(level, 1, key);
    result = wb_amqp_queue_bind(connection, name, key, name);
    if (result == WB_OK) {
        wb_amqp_level_pattern(level, 0, key);
        result = wb_amqp_exchange_bind(connection, name, key, next);
    }
    return note(result, "exchange", name, ret_part);
}

/* Who may not declare them: whether they are there. If not, what is missing is the permission. */
static int accept_existing(wb_amqp_connection *connection, wb_amqp_level_part *ret_part)
{
    wb_amqp_channel *channel = &connection->channels[WB_AMQP_SCRATCH];
    const wb_amqp_channel refused = *channel;
    int result = wb_amqp_levels_exist(connection, ret_part);
    if (result == WB_REJECT && channel->code == AMQP_NOT_FOUND) {
        channel->code = refused.code;
        memcpy(channel->text, refused.text, sizeof channel->text);
    }
    return result;
}

/* From below, so that what a level leads to is there. */
int wb_amqp_levels_declare(wb_amqp_connection *connection, wb_amqp_level_part *ret_part)
{
    int result = declare_exchange(connection, WB_AMQP_DELIVERY);
    if (was_forbidden(connection, result))
        return accept_existing(connection, ret_part);
    (void)note(result, "exchange", WB_AMQP_DELIVERY, ret_part);
    for (unsigned level = 0; level < WB_AMQP_LEVELS && result == WB_OK; level++)
        result = make_level(connection, level, ret_part);
    return result;
}

int wb_amqp_levels_exist(wb_amqp_connection *connection, wb_amqp_level_part *ret_part)
{
    char name[WB_AMQP_NAME_SIZE];
    int result = note(exchange_exists(connection, WB_AMQP_DELIVERY), "exchange", WB_AMQP_DELIVERY, ret_part);
    for (unsigned level = 0; level < WB_AMQP_LEVELS && result == WB_OK; level++) {
        wb_amqp_level_name(level, name);
        result = note(exchange_exists(connection, name), "exchange", name, ret_part);
        if (result == WB_OK)
            result = note(wb_amqp_queue_exists(connection, name), "queue", name, ret_part);
    }
    return result;
}

/* ---- destinations ----------------------------------------------------------------- */

int wb_amqp_levels_bind(wb_amqp_connection *connection, const char *address)
{
    const char *queue = wb_amqp_address_queue(address);
    char key[WB_AMQP_NAME_SIZE];
    wb_amqp_delay_pattern(queue, key);
    int has_exchange = connection->transport->config->topology == WB_AMQP_TOPOLOGY_CONVENTIONAL &&
                       queue == address;
    return has_exchange ? wb_amqp_exchange_bind(connection, WB_AMQP_DELIVERY, key, queue)
                        : wb_amqp_queue_bind(connection, WB_AMQP_DELIVERY, key, queue);
}

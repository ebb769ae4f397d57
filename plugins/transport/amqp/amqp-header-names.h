/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers that mean something to the transport, and how names are compared: every header
 * of every message is, so that the sizes of these are known when this is compiled.
 */
#ifndef WB_AMQP_HEADER_NAMES_H
#define WB_AMQP_HEADER_NAMES_H

#include <stdint.h>
#include <string.h>

#include "plugins/common/rabbitmq.h"

#define MESSAGE_ID "NServiceBus.MessageId"
#define CORRELATION_ID "NServiceBus.CorrelationId"
#define REPLY_TO "NServiceBus.ReplyToAddress"
#define CONTENT_TYPE "NServiceBus.ContentType"
#define ENCLOSED_TYPES "NServiceBus.EnclosedMessageTypes"
#define CONTENT_ENCODING "Waybill.ContentEncoding"
#define PRIORITY "Waybill.Priority"
#define TIMESTAMP "Waybill.Timestamp"
#define APP_ID "Waybill.AppId"
#define NON_PERSISTENT "NServiceBus.Transport.RabbitMQ.UseNonPersistentDelivery"
#define DELAY_SECONDS "NServiceBus.Transport.RabbitMQ.DelayInSeconds"

#define LITERAL(text) { sizeof text - 1, (void *)(uintptr_t)text }
#define IS(name, text) wb_amqp_is(name, (amqp_bytes_t)LITERAL(text))

static inline int wb_amqp_is(amqp_bytes_t name, amqp_bytes_t wanted)
{
    return name.len == wanted.len && memcmp(name.bytes, wanted.bytes, name.len) == 0;
}

#endif

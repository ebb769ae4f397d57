/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-map.h"

#include <string.h>

int wb_amqp_map_status(wb_amqp_failure *failure, int status, const char *doing)
{
    return wb_amqp_map_status_because(failure, status, doing, NULL);
}

int wb_amqp_map_status_because(wb_amqp_failure *failure, int status, const char *doing, const char *reason)
{
    const char *text = reason ? reason : amqp_error_string2(status);
    switch (status) {
    case AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED:
    case AMQP_STATUS_SSL_PEER_VERIFY_FAILED:
        return wb_amqp_failure_set(failure, WB_FATAL, WB_CAUSE_REFUSED, status,
                                   "could not %s: the broker's certificate is not trusted (%s); "
                                   "check tls_ca_file, that the certificate has not expired, and that "
                                   "host is a name in it",
                                   doing, text);
    case AMQP_STATUS_SSL_CONNECTION_FAILED:
        return wb_amqp_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, status,
                                   "could not %s: TLS cannot be set up (%s); check that the broker "
                                   "offers TLS at this port",
                                   doing, text);
    case AMQP_STATUS_SSL_ERROR:
        return wb_amqp_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, status,
                                   "could not %s: the broker ended TLS (%s); if it asks for "
                                   "certificates, check tls_cert_file and whether the broker trusts "
                                   "who signed it",
                                   doing, text);
    case AMQP_STATUS_BROKER_UNSUPPORTED_SASL_METHOD:
        return wb_amqp_failure_set(failure, WB_FATAL, WB_CAUSE_REFUSED, status,
                                   "could not %s: the broker does not offer this way to log in; "
                                   "for sasl = \"external\" it needs rabbitmq_auth_mechanism_ssl "
                                   "and EXTERNAL among its auth_mechanisms",
                                   doing);
    case AMQP_STATUS_NO_MEMORY:
        return wb_amqp_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_SERVER, status,
                                   "could not %s: out of memory", doing);
    case AMQP_STATUS_BAD_AMQP_DATA:
    case AMQP_STATUS_INVALID_PARAMETER:
    case AMQP_STATUS_TABLE_TOO_BIG:
        return wb_amqp_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, status,
                                   "could not %s: %s", doing, text);
    default:
        return wb_amqp_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, status,
                                   "could not %s: %s", doing, text);
    }
}

/* What a code with which the broker closes a connection says about whose fault it is.
 * The first line that fits counts; `word` is what its text must contain. */
static const struct meaning {
    int code;
    const char *word; /* NULL: any text */
    int result;
    int cause;
    const char *remedy;
} meanings[] = {
    { AMQP_ACCESS_REFUSED, NULL, WB_FATAL, WB_CAUSE_REFUSED,
      "; check user, password and permissions" },
    /* Somebody else's connections: the same login works when there are fewer. */
    { AMQP_NOT_ALLOWED, "is reached", WB_NOT_CONNECTED, WB_CAUSE_SERVER, "" },
    { AMQP_NOT_ALLOWED, "has reached the maximum", WB_NOT_CONNECTED, WB_CAUSE_SERVER, "" },
    { AMQP_NOT_ALLOWED, "is down", WB_NOT_CONNECTED, WB_CAUSE_SERVER, "" },
    { AMQP_NOT_ALLOWED, "not found", WB_FATAL, WB_CAUSE_MISSING, "; create the virtual host" },
    { AMQP_NOT_ALLOWED, "refused", WB_FATAL, WB_CAUSE_REFUSED,
      "; give the user permissions in this virtual host" },
    { AMQP_CONNECTION_FORCED, NULL, WB_NOT_CONNECTED, WB_CAUSE_SERVER, "" },
    { AMQP_RESOURCE_ERROR, NULL, WB_NOT_CONNECTED, WB_CAUSE_SERVER, "" },
    { AMQP_INTERNAL_ERROR, NULL, WB_NOT_CONNECTED, WB_CAUSE_SERVER, "" },
    /* It disliked something that we sent. */
    { 0, NULL, WB_NOT_CONNECTED, WB_CAUSE_OTHER, "" },
};

static const struct meaning *meaning_of(int code, amqp_bytes_t text)
{
    const struct meaning *meaning = meanings;
    for (; meaning->code; meaning++) {
        if (meaning->code == code &&
            (!meaning->word ||
             (text.len && memmem(text.bytes, text.len, meaning->word, strlen(meaning->word)))))
            break;
    }
    return meaning;
}

int wb_amqp_map_connection_close(wb_amqp_failure *failure, int code, amqp_bytes_t text)
{
    const struct meaning *meaning = meaning_of(code, text);
    return wb_amqp_failure_set(failure, meaning->result, meaning->cause, code,
                               "the broker says: %.*s%s",
                               (int)(text.len < 255 ? text.len : 255),
                               text.len ? (const char *)text.bytes : "", meaning->remedy);
}

int wb_amqp_map_login(wb_amqp_failure *failure, amqp_rpc_reply_t reply, const char *doing)
{
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return WB_OK;
    if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION &&
        reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
        const amqp_connection_close_t *close = reply.reply.decoded;
        return wb_amqp_map_connection_close(failure, close->reply_code, close->reply_text);
    }
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
        return wb_amqp_map_status(failure, reply.library_error, doing);
    return wb_amqp_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                               "could not %s: the answer is not AMQP 0-9-1", doing);
}

/* RabbitMQ 3 does not say which of its three permissions is missing; the method does. */
static const struct need {
    amqp_method_number_t method;
    const char *remedy;
} needs[] = {
#define GRANT(permissions) "; grant the user " permissions " (rabbitmqctl set_permissions)"
    { AMQP_QUEUE_DECLARE_METHOD, GRANT("configure permission for it") },
    { AMQP_EXCHANGE_DECLARE_METHOD, GRANT("configure permission for it") },
    { AMQP_QUEUE_BIND_METHOD, GRANT("write permission for the queue and read permission for the exchange") },
    { AMQP_EXCHANGE_BIND_METHOD,
      GRANT("write permission for the exchange that receives and read permission for the other") },
    { AMQP_BASIC_CONSUME_METHOD, GRANT("read permission for it") },
    { AMQP_BASIC_PUBLISH_METHOD, GRANT("write permission for it") },
#undef GRANT
};

const char *wb_amqp_map_remedy(const amqp_channel_close_t *close)
{
    amqp_method_number_t method = (amqp_method_number_t)close->class_id << 16 | close->method_id;
    for (size_t i = 0; close->reply_code == AMQP_ACCESS_REFUSED && i < sizeof needs / sizeof *needs; i++)
        if (needs[i].method == method)
            return needs[i].remedy;
    return "";
}

int wb_amqp_map_cause(int64_t code)
{
    switch (code) {
    case AMQP_ACCESS_REFUSED: return WB_CAUSE_REFUSED;
    case AMQP_NOT_FOUND: return WB_CAUSE_MISSING;
    case AMQP_PRECONDITION_FAILED: return WB_CAUSE_MISMATCH;
    case AMQP_CONTENT_TOO_LARGE: return WB_CAUSE_TOO_LARGE;
    case AMQP_CONNECTION_FORCED:
    case AMQP_RESOURCE_ERROR:
    case AMQP_INTERNAL_ERROR: return WB_CAUSE_SERVER;
    default: return WB_CAUSE_OTHER;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-map.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int wb_amqp_failure_set(wb_amqp_failure *failure, int result, int cause, int64_t code,
                        const char *format, ...)
{
    va_list arguments;
    failure->result = result;
    failure->cause = cause;
    failure->code = code;
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return result;
}

int wb_amqp_map_status(wb_amqp_failure *failure, int status, const char *doing)
{
    const char *text = amqp_error_string2(status);
    switch (status) {
    case AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED:
    case AMQP_STATUS_SSL_PEER_VERIFY_FAILED:
        return wb_amqp_failure_set(failure, WB_FATAL, WB_CAUSE_REFUSED, status,
                                   "could not %s: the broker's certificate is not trusted (%s); "
                                   "check tls_ca_file and that host is a name in the certificate",
                                   doing, text);
    case AMQP_STATUS_NO_MEMORY:
        return wb_amqp_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, status,
                                   "could not %s: out of memory", doing);
    default:
        return wb_amqp_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, status,
                                   "could not %s: %s", doing, text);
    }
}

static int contains(amqp_bytes_t text, const char *word)
{
    return memmem(text.bytes, text.len, word, strlen(word)) != NULL;
}

int wb_amqp_map_connection_close(wb_amqp_failure *failure, int code, amqp_bytes_t text)
{
    int result = WB_NOT_CONNECTED;
    int cause = WB_CAUSE_UNREACHABLE;
    const char *remedy = "";
    if (code == AMQP_ACCESS_REFUSED) {
        result = WB_FATAL;
        cause = WB_CAUSE_REFUSED;
        remedy = "; check user, password and permissions";
    } else if (code == AMQP_NOT_ALLOWED && contains(text, "not found")) {
        result = WB_FATAL;
        cause = WB_CAUSE_MISSING;
        remedy = "; create the virtual host";
    } else if (code == AMQP_NOT_ALLOWED && contains(text, "refused")) {
        result = WB_FATAL;
        cause = WB_CAUSE_REFUSED;
        remedy = "; give the user permissions in this virtual host";
    }
    return wb_amqp_failure_set(failure, result, cause, code, "the broker says: %.*s%s",
                               (int)(text.len < 255 ? text.len : 255), (const char *)text.bytes,
                               remedy);
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

int wb_amqp_map_cause(int64_t code)
{
    switch (code) {
    case AMQP_ACCESS_REFUSED: return WB_CAUSE_REFUSED;
    case AMQP_NOT_FOUND: return WB_CAUSE_MISSING;
    case AMQP_PRECONDITION_FAILED: return WB_CAUSE_MISMATCH;
    default: return WB_CAUSE_OTHER;
    }
}

int wb_amqp_failure_report(const wb_host *host, const wb_amqp_failure *failure, wb_error *error)
{
    return host->fail(host, error, failure->result, failure->cause, failure->code, "%s",
                      failure->text);
}

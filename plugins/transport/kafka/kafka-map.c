/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-map.h"

#include <stdarg.h>
#include <stdio.h>

#define ERR(name) RD_KAFKA_RESP_ERR_##name

int wb_kafka_failure_set(wb_kafka_failure *failure, int result, int cause, int64_t code,
                         const char *format, ...)
{
    va_list arguments;
    if (failure->result != WB_OK)
        return failure->result;
    failure->result = result;
    failure->cause = cause;
    failure->code = code;
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return result;
}

int wb_kafka_map_cause(rd_kafka_resp_err_t code)
{
    switch (code) {
    case ERR(TOPIC_AUTHORIZATION_FAILED):
    case ERR(GROUP_AUTHORIZATION_FAILED):
    case ERR(CLUSTER_AUTHORIZATION_FAILED):
    case ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
    case ERR(SASL_AUTHENTICATION_FAILED):
    case ERR(UNSUPPORTED_SASL_MECHANISM):
    case ERR(_AUTHENTICATION):
    case ERR(_SSL): return WB_CAUSE_REFUSED;
    case ERR(UNKNOWN_TOPIC_OR_PART):
    case ERR(_UNKNOWN_TOPIC):
    case ERR(_UNKNOWN_PARTITION): return WB_CAUSE_MISSING;
    case ERR(_TRANSPORT):
    case ERR(_ALL_BROKERS_DOWN):
    case ERR(_RESOLVE):
    case ERR(_TIMED_OUT): return WB_CAUSE_UNREACHABLE;
    case ERR(TOPIC_EXCEPTION):
    case ERR(INVALID_SESSION_TIMEOUT):
    case ERR(INVALID_TRANSACTION_TIMEOUT): return WB_CAUSE_CONFIG;
    case ERR(MSG_SIZE_TOO_LARGE):
    case ERR(RECORD_LIST_TOO_LARGE): return WB_CAUSE_TOO_LARGE;
    default: return WB_CAUSE_OTHER;
    }
}

int wb_kafka_failure_map(wb_kafka_failure *failure, rd_kafka_resp_err_t code, const char *doing,
                         const char *detail)
{
    int cause = wb_kafka_map_cause(code);
    int result = cause == WB_CAUSE_REFUSED || cause == WB_CAUSE_CONFIG ? WB_FATAL : WB_NOT_CONNECTED;
    if (wb_kafka_map_is_fenced(code))
        return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_OTHER, code,
                                    "could not %s: another process uses the same instance name and "
                                    "has taken the place of this one; give each its own with the "
                                    "option instance (%s)",
                                    doing, rd_kafka_err2str(code));
    return wb_kafka_failure_set(failure, result, cause, code, "could not %s: %s", doing,
                                detail && *detail ? detail : rd_kafka_err2str(code));
}

int wb_kafka_failure_report(const wb_host *host, const wb_kafka_failure *failure, wb_error *error)
{
    return host->fail(host, error, failure->result, failure->cause, failure->code, "%s",
                      failure->text);
}

int wb_kafka_map_is_fenced(rd_kafka_resp_err_t code)
{
    return code == ERR(FENCED_INSTANCE_ID) || code == ERR(_FENCED) ||
           code == ERR(PRODUCER_FENCED) || code == ERR(INVALID_PRODUCER_EPOCH);
}

int wb_kafka_map_ends_consumer(rd_kafka_resp_err_t code)
{
    switch (code) {
    case ERR(_FATAL):
    case ERR(FENCED_INSTANCE_ID):
    case ERR(_AUTO_OFFSET_RESET):
    case ERR(OFFSET_OUT_OF_RANGE):
    case ERR(UNKNOWN_TOPIC_OR_PART):
    case ERR(TOPIC_AUTHORIZATION_FAILED):
    case ERR(GROUP_AUTHORIZATION_FAILED):
    case ERR(INVALID_SESSION_TIMEOUT):
    case ERR(INCONSISTENT_GROUP_PROTOCOL):
    case ERR(GROUP_MAX_SIZE_REACHED):
    case ERR(MSG_SIZE_TOO_LARGE):
    case ERR(_BAD_MSG):
    case ERR(_BAD_COMPRESSION): return 1;
    default: return 0;
    }
}

int wb_kafka_map_delivery(rd_kafka_resp_err_t code, rd_kafka_msg_status_t status)
{
    switch (code) {
    case ERR(NO_ERROR): return WB_OK;
    case ERR(MSG_SIZE_TOO_LARGE):
    case ERR(RECORD_LIST_TOO_LARGE):
    case ERR(TOPIC_EXCEPTION):
    case ERR(TOPIC_AUTHORIZATION_FAILED):
    case ERR(INVALID_RECORD):
    case ERR(POLICY_VIOLATION):
    case ERR(UNKNOWN_TOPIC_OR_PART):
    case ERR(_UNKNOWN_TOPIC):
    case ERR(_UNKNOWN_PARTITION):
        return status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED ? WB_IN_DOUBT : WB_REJECT;
    default:
        return status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED ? WB_NOT_CONNECTED : WB_IN_DOUBT;
    }
}

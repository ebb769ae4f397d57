/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-map.h"

#include <string.h>

/* The version whose SCRAM sends the nonce once: brokers from 4.0 on refuse the other. */
#define SCRAM_MENDED 0x02060100

#define ERR(name) RD_KAFKA_RESP_ERR_##name

/* ---- the table ------------------------------------------------------------------- */

/* Passes by itself: whoever asks meets it. */
#define SERVER(cause) WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_##cause
/* Never passes for this operation, and is nobody else's. */
#define OPERATION(cause) WB_NOT_CONNECTED, WB_REJECT, WB_CAUSE_##cause
/* The same, and where the session itself meets it, somebody must act. */
#define TOPIC(cause) WB_FATAL, WB_REJECT, WB_CAUSE_##cause
/* Never passes until somebody acts. */
#define CONFIGURATION(cause) WB_FATAL, WB_FATAL, WB_CAUSE_##cause

#define ENDS WB_KAFKA_ENDS_CONSUMER
#define SHARED WB_KAFKA_SHARED
#define FENCED WB_KAFKA_FENCED

static const wb_kafka_code codes[] = {
    /* nobody answers */
    { ERR(_TRANSPORT), SERVER(UNREACHABLE), 0 },
    { ERR(_ALL_BROKERS_DOWN), SERVER(UNREACHABLE), 0 },
    { ERR(_RESOLVE), SERVER(UNREACHABLE), 0 },
    { ERR(_SSL), SERVER(UNREACHABLE), 0 }, /* or refused: see sayings */
    { ERR(_TIMED_OUT), SERVER(UNREACHABLE), 0 },
    { ERR(_TIMED_OUT_QUEUE), SERVER(UNREACHABLE), 0 },
    { ERR(_MSG_TIMED_OUT), SERVER(UNREACHABLE), 0 },
    { ERR(_PURGE_QUEUE), SERVER(UNREACHABLE), 0 },
    { ERR(_PURGE_INFLIGHT), SERVER(UNREACHABLE), 0 },
    { ERR(_WAIT_COORD), SERVER(UNREACHABLE), 0 },
    { ERR(NETWORK_EXCEPTION), SERVER(UNREACHABLE), 0 },
    { ERR(BROKER_NOT_AVAILABLE), SERVER(UNREACHABLE), 0 },
    /* the cluster cannot now: replicas, disks, quotas, elections, coordinators that move */
    { ERR(UNKNOWN), SERVER(SERVER), 0 },
    { ERR(REQUEST_TIMED_OUT), SERVER(SERVER), 0 },
    { ERR(NOT_ENOUGH_REPLICAS), SERVER(SERVER), 0 },
    { ERR(NOT_ENOUGH_REPLICAS_AFTER_APPEND), SERVER(SERVER), 0 },
    { ERR(_ISR_INSUFF), SERVER(SERVER), 0 },
    { ERR(KAFKA_STORAGE_ERROR), SERVER(SERVER), 0 },
    { ERR(LOG_DIR_NOT_FOUND), SERVER(SERVER), 0 },
    { ERR(THROTTLING_QUOTA_EXCEEDED), SERVER(SERVER), 0 },
    { ERR(LEADER_NOT_AVAILABLE), SERVER(SERVER), 0 },
    { ERR(NOT_LEADER_FOR_PARTITION), SERVER(SERVER), 0 },
    { ERR(REPLICA_NOT_AVAILABLE), SERVER(SERVER), 0 },
    { ERR(ELIGIBLE_LEADERS_NOT_AVAILABLE), SERVER(SERVER), 0 },
    { ERR(FENCED_LEADER_EPOCH), SERVER(SERVER), 0 },
    { ERR(UNKNOWN_LEADER_EPOCH), SERVER(SERVER), 0 },
    { ERR(NOT_CONTROLLER), SERVER(SERVER), 0 },
    { ERR(LISTENER_NOT_FOUND), SERVER(SERVER), 0 },
    { ERR(COORDINATOR_LOAD_IN_PROGRESS), SERVER(SERVER), 0 },
    { ERR(COORDINATOR_NOT_AVAILABLE), SERVER(SERVER), 0 },
    { ERR(NOT_COORDINATOR), SERVER(SERVER), 0 },
    { ERR(_PARTIAL), SERVER(SERVER), 0 }, /* some brokers did not answer */
    { ERR(TRANSACTION_COORDINATOR_FENCED), SERVER(SERVER), 0 },
    { ERR(CONCURRENT_TRANSACTIONS), SERVER(SERVER), 0 },
    { ERR(UNSTABLE_OFFSET_COMMIT), SERVER(SERVER), 0 },
    { ERR(OFFSET_NOT_AVAILABLE), SERVER(SERVER), 0 },
    { ERR(REBALANCE_IN_PROGRESS), SERVER(SERVER), 0 },
    { ERR(ILLEGAL_GENERATION), SERVER(SERVER), 0 },
    { ERR(UNKNOWN_MEMBER_ID), SERVER(SERVER), 0 },
    { ERR(INVALID_MSG), SERVER(SERVER), 0 }, /* damaged on its way */
    /* this session's: another one begins anew */
    { ERR(OFFSET_OUT_OF_RANGE), SERVER(OTHER), ENDS },
    { ERR(_AUTO_OFFSET_RESET), SERVER(OTHER), ENDS },
    { ERR(_BAD_MSG), SERVER(OTHER), ENDS },
    { ERR(_BAD_COMPRESSION), SERVER(OTHER), ENDS },
    { ERR(_FATAL), SERVER(OTHER), ENDS },
    { ERR(OUT_OF_ORDER_SEQUENCE_NUMBER), SERVER(OTHER), 0 },
    { ERR(UNKNOWN_PRODUCER_ID), SERVER(OTHER), 0 },
    { ERR(INVALID_PRODUCER_ID_MAPPING), SERVER(OTHER), 0 },
    { ERR(INVALID_TXN_STATE), SERVER(OTHER), 0 },
    { ERR(_STATE), SERVER(OTHER), 0 },
    { ERR(FENCED_INSTANCE_ID), WB_FATAL, WB_NOT_CONNECTED, WB_CAUSE_OTHER, ENDS | FENCED },
    { ERR(_FENCED), WB_FATAL, WB_NOT_CONNECTED, WB_CAUSE_OTHER, FENCED },
    { ERR(PRODUCER_FENCED), WB_FATAL, WB_NOT_CONNECTED, WB_CAUSE_OTHER, FENCED },
    { ERR(INVALID_PRODUCER_EPOCH), WB_FATAL, WB_NOT_CONNECTED, WB_CAUSE_OTHER, FENCED },
    /* the operation's */
    { ERR(MSG_SIZE_TOO_LARGE), OPERATION(TOO_LARGE), ENDS | SHARED },
    { ERR(RECORD_LIST_TOO_LARGE), OPERATION(TOO_LARGE), SHARED },
    { ERR(INVALID_MSG_SIZE), OPERATION(OTHER), SHARED },
    { ERR(INVALID_RECORD), OPERATION(OTHER), SHARED },
    { ERR(INVALID_TIMESTAMP), OPERATION(OTHER), SHARED },
    { ERR(UNKNOWN_TOPIC_OR_PART), OPERATION(MISSING), ENDS },
    { ERR(_UNKNOWN_TOPIC), OPERATION(MISSING), 0 },
    { ERR(_UNKNOWN_PARTITION), OPERATION(MISSING), 0 },
    { ERR(TOPIC_EXCEPTION), TOPIC(CONFIG), 0 },
    { ERR(TOPIC_AUTHORIZATION_FAILED), TOPIC(REFUSED), ENDS },
    { ERR(_INVALID_ARG), TOPIC(CONFIG), 0 },
    { ERR(POLICY_VIOLATION), TOPIC(CONFIG), SHARED },
    { ERR(UNSUPPORTED_FOR_MESSAGE_FORMAT), TOPIC(CONFIG), 0 },
    /* the configuration's */
    { ERR(GROUP_AUTHORIZATION_FAILED), CONFIGURATION(REFUSED), ENDS },
    { ERR(CLUSTER_AUTHORIZATION_FAILED), CONFIGURATION(REFUSED), 0 },
    { ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), CONFIGURATION(REFUSED), 0 },
    { ERR(SASL_AUTHENTICATION_FAILED), CONFIGURATION(REFUSED), 0 },
    { ERR(UNSUPPORTED_SASL_MECHANISM), CONFIGURATION(REFUSED), 0 },
    { ERR(ILLEGAL_SASL_STATE), CONFIGURATION(REFUSED), 0 },
    { ERR(SECURITY_DISABLED), CONFIGURATION(REFUSED), 0 },
    { ERR(_AUTHENTICATION), CONFIGURATION(REFUSED), 0 },
    { ERR(INVALID_SESSION_TIMEOUT), CONFIGURATION(CONFIG), ENDS },
    { ERR(INVALID_TRANSACTION_TIMEOUT), CONFIGURATION(CONFIG), 0 },
    { ERR(INCONSISTENT_GROUP_PROTOCOL), CONFIGURATION(CONFIG), ENDS },
    { ERR(GROUP_MAX_SIZE_REACHED), CONFIGURATION(CONFIG), ENDS },
    { ERR(INVALID_GROUP_ID), CONFIGURATION(CONFIG), 0 },
    { ERR(INVALID_REQUIRED_ACKS), CONFIGURATION(CONFIG), 0 },
    { ERR(INVALID_PARTITIONS), CONFIGURATION(CONFIG), 0 },
    { ERR(INVALID_REPLICATION_FACTOR), CONFIGURATION(CONFIG), 0 },
    { ERR(INVALID_CONFIG), CONFIGURATION(CONFIG), 0 },
    { ERR(UNSUPPORTED_COMPRESSION_TYPE), CONFIGURATION(CONFIG), 0 },
    { ERR(UNSUPPORTED_VERSION), CONFIGURATION(CONFIG), 0 },
    { ERR(_UNSUPPORTED_FEATURE), CONFIGURATION(CONFIG), 0 },
};

wb_kafka_code wb_kafka_map_code(rd_kafka_resp_err_t code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i];
    return (wb_kafka_code){ code, SERVER(OTHER), 0 };
}

int wb_kafka_map_cause(rd_kafka_resp_err_t code)
{
    return wb_kafka_map_code(code).cause;
}

int wb_kafka_map_is_fenced(rd_kafka_resp_err_t code)
{
    return (wb_kafka_map_code(code).flags & FENCED) != 0;
}

int wb_kafka_map_is_shared(rd_kafka_resp_err_t code)
{
    return (wb_kafka_map_code(code).flags & SHARED) != 0;
}

int wb_kafka_map_ends_consumer(rd_kafka_resp_err_t code)
{
    return (wb_kafka_map_code(code).flags & ENDS) != 0;
}

int wb_kafka_map_delivery(rd_kafka_resp_err_t code, rd_kafka_msg_status_t status)
{
    wb_kafka_code row = wb_kafka_map_code(code);
    if (code == ERR(NO_ERROR))
        return WB_OK;
    if (status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED ||
        (row.delivery == WB_REJECT && status != RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED))
        return row.delivery;
    return WB_IN_DOUBT;
}

/* ---- failures -------------------------------------------------------------------- */

/* A handshake that was torn and a certificate that is not trusted have the same code, or that of
 * any lost connection: the words tell. The first that fit count. */
static const struct saying {
    const char *words;
    int result;
    int cause;
    const char *remedy;
} sayings[] = {
    { "certificate verify failed", WB_FATAL, WB_CAUSE_REFUSED,
      "; check tls_ca_file, that the broker's certificate has not expired, and that brokers has a "
      "name in it" },
    { "alert certificate", WB_FATAL, WB_CAUSE_REFUSED, NULL },
    { "alert bad certificate", WB_FATAL, WB_CAUSE_REFUSED, NULL },
    { "alert unknown ca", WB_FATAL, WB_CAUSE_REFUSED, NULL },
    { "SSL handshake failed", WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
      "; check that the broker offers TLS at this port" },
    { "in state SSL_HANDSHAKE", WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, /* the same, if it is noticed elsewhere first */
      "; check that the broker offers TLS at this port" },
};

static const struct saying *find_saying(const char *text)
{
    for (size_t i = 0; text && i < sizeof sayings / sizeof *sayings; i++)
        if (strstr(text, sayings[i].words))
            return &sayings[i];
    return NULL;
}

int wb_kafka_map_is_refusal(rd_kafka_resp_err_t code, const char *text)
{
    const struct saying *saying = find_saying(text);
    return wb_kafka_map_cause(code) == WB_CAUSE_REFUSED ||
           (saying && saying->cause == WB_CAUSE_REFUSED);
}

static const char *remedy_of_login(const char *text)
{
    if (text && strstr(text, "SCRAM") && rd_kafka_version() < SCRAM_MENDED)
        return "; check user and password; librdkafka before 2.6.1, which this is, cannot log in by "
               "SCRAM to Kafka 4.0 and later: use plain with TLS";
    return "; check user and password";
}

const char *wb_kafka_map_remedy(rd_kafka_resp_err_t code, int operation)
{
    static const char *const topics[] = { "; grant the user READ on the topic (kafka-acls)",
                                          "; grant the user WRITE on the topic (kafka-acls)",
                                          "; grant the user CREATE on the topic (kafka-acls)",
                                          ("; grant the user WRITE on the topic, and CREATE if it is "
                                           "not there (kafka-acls)") };
    switch (code) {
    case ERR(TOPIC_AUTHORIZATION_FAILED): return topics[operation];
    case ERR(GROUP_AUTHORIZATION_FAILED):
        return "; grant the user READ on the group, which has the endpoint's name (kafka-acls)";
    case ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
        return "; grant the user WRITE on the transactional ids that begin with the endpoint's name "
               "and a dot (kafka-acls)";
    case ERR(CLUSTER_AUTHORIZATION_FAILED):
        return operation == WB_KAFKA_CREATE ? topics[operation]
                                            : "; grant the user IDEMPOTENT_WRITE on the cluster (kafka-acls)";
    default: return "";
    }
}

static const char *remedy_of(rd_kafka_resp_err_t code, const char *text)
{
    const struct saying *saying = find_saying(text);
    if (code == ERR(_AUTHENTICATION) || code == ERR(SASL_AUTHENTICATION_FAILED))
        return remedy_of_login(text);
    if (saying)
        return saying->remedy ? saying->remedy : "; the broker wants a certificate that it trusts: "
                                                 "check tls_cert_file";
    return wb_kafka_map_remedy(code, WB_KAFKA_READ);
}

/* The end of a sentence is what to do: the middle gives way. */
static int set_with_remedy(wb_kafka_failure *failure, const wb_kafka_code *row, const char *doing,
                           const char *text)
{
    const struct saying *saying = find_saying(text);
    return wb_kafka_failure_set(failure, saying ? saying->result : row->session,
                                saying ? saying->cause : row->cause, row->code, "could not %s: %.220s%s",
                                doing, text, remedy_of(row->code, text));
}

int wb_kafka_failure_map(wb_kafka_failure *failure, rd_kafka_resp_err_t code, const char *doing,
                         const char *detail)
{
    wb_kafka_code row = wb_kafka_map_code(code);
    if (wb_kafka_map_is_fenced(code))
        return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_OTHER, code,
                                    "could not %s: another process uses the same instance name and "
                                    "has taken the place of this one; give each its own with the "
                                    "option instance (%s)",
                                    doing, rd_kafka_err2str(code));
    return set_with_remedy(failure, &row, doing, detail && *detail ? detail : rd_kafka_err2str(code));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Header names: those of NServiceBus, byte for byte, so that an endpoint takes its place
 * in an existing system and its failed messages show up in ServicePulse.
 */
#ifndef WB_MESSAGE_HEADER_NAMES_H
#define WB_MESSAGE_HEADER_NAMES_H

#define WB_HEADER_MESSAGE_ID "NServiceBus.MessageId"
#define WB_HEADER_INTENT "NServiceBus.MessageIntent"
#define WB_HEADER_CONVERSATION_ID "NServiceBus.ConversationId"
#define WB_HEADER_CORRELATION_ID "NServiceBus.CorrelationId"
#define WB_HEADER_RELATED_TO "NServiceBus.RelatedTo"
#define WB_HEADER_REPLY_TO "NServiceBus.ReplyToAddress"
#define WB_HEADER_ORIGINATING_ENDPOINT "NServiceBus.OriginatingEndpoint"
#define WB_HEADER_ORIGINATING_MACHINE "NServiceBus.OriginatingMachine"
#define WB_HEADER_ORIGINATING_HOST_ID "$.diagnostics.originating.hostid"
#define WB_HEADER_CONTENT_TYPE "NServiceBus.ContentType"
#define WB_HEADER_TYPES "NServiceBus.EnclosedMessageTypes"
#define WB_HEADER_TIME_SENT "NServiceBus.TimeSent"
/* On a message that was sent with a delay. */
#define WB_HEADER_DELIVER_AT "NServiceBus.DeliverAt"
/* How long it may wait to be received; waybill/sys/expiry.h reads it. */
#define WB_HEADER_TIME_TO_BE_RECEIVED "NServiceBus.TimeToBeReceived"

/* A saga that asked gets its answers by these. */
#define WB_HEADER_ORIGINATING_SAGA_ID "NServiceBus.OriginatingSagaId"
#define WB_HEADER_ORIGINATING_SAGA_TYPE "NServiceBus.OriginatingSagaType"
#define WB_HEADER_SAGA_ID "NServiceBus.SagaId"
#define WB_HEADER_SAGA_TYPE "NServiceBus.SagaType"

/* W3C trace context and baggage. */
#define WB_HEADER_TRACE_PARENT "traceparent"
#define WB_HEADER_TRACE_STATE "tracestate"
#define WB_HEADER_BAGGAGE "baggage"

/* Of a message that is for a part of the platform, not for a handler. */
#define WB_HEADER_CONTROL_MESSAGE "NServiceBus.ControlMessage"

/* Of that of a transactional session (session_control.h). */
#define WB_HEADER_SESSION_PREFIX "NServiceBus.TransactionalSession."
#define WB_HEADER_SESSION_REMAINING WB_HEADER_SESSION_PREFIX "RemainingCommitDuration"
#define WB_HEADER_SESSION_INCREMENT WB_HEADER_SESSION_PREFIX "CommitDelayIncrement"
#define WB_HEADER_SESSION_ATTEMPT WB_HEADER_SESSION_PREFIX "CommitDelayAttempt"
#define WB_HEADER_SESSION_TIME_SENT WB_HEADER_SESSION_PREFIX "TimeSent"
/* Ours: the number of the record that its session replaces, decimal. */
#define WB_HEADER_SESSION_REPLACES "Waybill.Session.Replaces"

/* Ours: the key of a message whose sender has no other way to give one. */
#define WB_HEADER_KEY "Waybill.Key"

/* Ours: of what a program wrote in SQL and that can be no message, on its way to the error queue. */
#define WB_HEADER_WRITTEN_HEADERS "Waybill.Written.Headers"
#define WB_HEADER_WRITTEN_DESTINATION "Waybill.Written.Destination"

/* Ours: what other senders say of a message beside its headers, where the transport has a place for
 * that. Numbers are decimal; the time is in seconds since 1970, UTC. */
#define WB_HEADER_CONTENT_ENCODING "Waybill.ContentEncoding"
#define WB_HEADER_PRIORITY "Waybill.Priority"
#define WB_HEADER_TIMESTAMP "Waybill.Timestamp"
#define WB_HEADER_APP_ID "Waybill.AppId"

/* On a message in the error queue. */
#define WB_HEADER_RETRIES "NServiceBus.Retries"
#define WB_HEADER_RETRIES_TIMESTAMP "NServiceBus.Retries.Timestamp"
#define WB_HEADER_FL_RETRIES "NServiceBus.FLRetries"
#define WB_HEADER_FAILED_QUEUE "NServiceBus.FailedQ"
#define WB_HEADER_TIME_OF_FAILURE "NServiceBus.TimeOfFailure"
#define WB_HEADER_EXCEPTION_PREFIX "NServiceBus.ExceptionInfo."
#define WB_HEADER_EXCEPTION_TYPE "NServiceBus.ExceptionInfo.ExceptionType"
#define WB_HEADER_EXCEPTION_MESSAGE "NServiceBus.ExceptionInfo.Message"
#define WB_HEADER_EXCEPTION_SOURCE "NServiceBus.ExceptionInfo.Source"
#define WB_HEADER_EXCEPTION_STACK_TRACE "NServiceBus.ExceptionInfo.StackTrace"
#define WB_HEADER_PROCESSING_MACHINE "NServiceBus.ProcessingMachine"
#define WB_HEADER_PROCESSING_ENDPOINT "NServiceBus.ProcessingEndpoint"
/* On a message in the audit queue; with the processing machine and endpoint above, and the host's. */
#define WB_HEADER_PROCESSING_STARTED "NServiceBus.ProcessingStarted"
#define WB_HEADER_PROCESSING_ENDED "NServiceBus.ProcessingEnded"

/* On a message that ServiceControl sent back from the error queue: its name there, and who wants to
 * hear that it was handled; on that answer; on the audit copy, when there was one. */
#define WB_HEADER_RETRY_UNIQUE_ID "ServiceControl.Retry.UniqueMessageId"
#define WB_HEADER_RETRY_ACKNOWLEDGEMENT_QUEUE "ServiceControl.Retry.AcknowledgementQueue"
#define WB_HEADER_RETRY_SUCCESSFUL "ServiceControl.Retry.Successful"
#define WB_HEADER_RETRY_ACKNOWLEDGED "ServiceControl.Retry.AcknowledgementSent"
/* On one that was edited before: the failure it was made of. */
#define WB_HEADER_EDIT_OF "ServiceControl.EditOf"

/* What was left out of the copy, because the error queue refused it as it was. */
#define WB_HEADER_TRIMMED "Waybill.Trimmed"
/* Why an endpoint that keeps failed messages could not keep this one. What else it says of a failure is that of the endpoint it failed in. */
#define WB_HEADER_NOT_KEPT "Waybill.NotKept"
#define WB_HEADER_HOST_ID "$.diagnostics.hostid"
#define WB_HEADER_HOST_NAME "$.diagnostics.hostdisplayname"

#endif

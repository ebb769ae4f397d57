/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/configuration.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define SECOND INT64_C(1000000000)
#define DAY (INT64_C(86400) * SECOND)
#define GIB (INT64_C(1) << 30)

static const char *const log_levels[] = { "error", "warning", "info", "debug", NULL };
static const char *const log_formats[] = { "text", "json", NULL }; /* WB_LOG_TEXT, WB_LOG_JSON */
static const char *const modes[] = { "none", "receive_only", "sends_atomic_with_receive",
                                     "transaction_scope", NULL };

static const char *const on_failure[] = { "restart", "exit", NULL };
static const char *const on_message_failure[] = { "block", "delay", NULL };
static const char *const delays_by[] = { "transport", "store", NULL };
static const char *const on_circuit_open[] = { "log", "stop", NULL };
static const char *const starts[] = { "fail", "wait", NULL };
static const char *const session_modes[] = { "control_message", "store_and_forward", NULL };

static const wb_option top_options[] = {
    { .name = "plugin_path",
      .type = WB_OPTION_LIST,
      .offset = offsetof(wb_config, plugin_path_list),
      .since = "0.1",
      .summary = "directories with more plugins",
      .help = "Looked into after the installed plugins: DIR/transport/NAME.so, "
              "DIR/persistence/NAME.so or DIR/observer/NAME.so, then DIR/NAME.so. A directory and everything above it "
              "must belong to root or to the user that runs the endpoint, and nobody else may "
              "write there. A relative path starts at the directory of the configuration file." },
    { .name = "log_level",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_config, log_level),
      .default_text = "info",
      .choices = log_levels,
      .since = "0.1",
      .summary = "lines above this level are not written",
      .help = "waybill run reads it anew when it gets SIGHUP, with log_file and log_format." },
    { .name = "log_file",
      .type = WB_OPTION_STRING,
      .offset = offsetof(wb_config, log_file),
      .since = "1.0",
      .summary = "file that waybill run appends its log to; default: standard error",
      .help = "Made with mode 0640 where there is none. A relative path starts at the directory of "
              "the configuration file. SIGHUP has it opened again, for those who rename it. A log that "
              "cannot be written, on a full disk, stops nothing: lines are lost. Other verbs, and what is wrong "
              "before the endpoints start, are for standard error." },
    { .name = "log_format",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_config, log_format),
      .default_text = "text",
      .choices = log_formats,
      .since = "1.0",
      .summary = "how waybill run writes a line of the log",
      .help = "text: the time, then key=value. json: one object a line, with time, level, endpoint, text, and fields, an "
              "object of strings. In both, control characters are escaped." },
};

static const wb_option endpoint_options[] = {
    { .name = "name",
      .type = WB_OPTION_STRING,
      .flags = WB_OPTION_REQUIRED,
      .offset = offsetof(wb_endpoint_config, name),
      .since = "0.1",
      .summary = "the endpoint's name, which is also its queue",
      .help = "1 to 200 printable ASCII characters without blanks, quotes, back-quotes and "
              "backslashes. Two endpoints of a file have different names." },
    { .name = "handlers",
      .type = WB_OPTION_LIST,
      .offset = offsetof(wb_endpoint_config, handler_list),
      .since = "0.1",
      .summary = "handler modules to load",
      .help = "Shared objects that export WB_HANDLERS. A relative path starts at the directory of "
              "the configuration file, then at the installed handler directory. An endpoint with a group "
              "session may have none: it is there for a program's sessions." },
    { .name = "commands",
      .type = WB_OPTION_LIST,
      .offset = offsetof(wb_endpoint_config, commands),
      .since = "0.1",
      .summary = "types of handlers whose messages are sent to the queue and never published",
      .help = "Commands and replies. waybill install makes no subscription for them; to all other types "
              "of the handlers the endpoint subscribes. What was subscribed to before is left alone." },
    { .name = "settings",
      .type = WB_OPTION_MAP,
      .flags = WB_OPTION_SECRET | WB_OPTION_MAYBE_SECRET, /* nobody but the module knows what they are */
      .offset = offsetof(wb_endpoint_config, setting_map),
      .since = "1.0",
      .summary = "what handler modules want to know: { name = \"value\"; ... }",
      .help = "Texts, which modules read with wb_setting(). Which names there are is theirs to say, in their hooks "
              "check and open; all modules of the endpoint see all of them. A value may be \"env:NAME\" or \"file:PATH\"." },
    { .name = "concurrency",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, concurrency),
      .minimum = 1,
      .maximum = 1024,
      .since = "0.1",
      .summary = "number of workers; default: the number of CPUs, at least 2",
      .help = "Each worker has a thread, a connection to the broker and one to the database of "
              "its own." },
    { .name = "transaction_mode",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_endpoint_config, transaction_mode),
      .default_text = "receive_only",
      .choices = modes,
      .since = "0.1",
      .summary = "what receiving, handling and sending have in common",
      .help = "none: a message is acknowledged before it is handled. receive_only: after. "
              "sends_atomic_with_receive: together with what was sent. transaction_scope: "
              "together with what was sent and with the business data. The outbox requires "
              "receive_only. Which modes there are depends on the transport." },
    { .name = "batch_max",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, batch_max),
      .default_text = "100",
      .minimum = 1,
      .maximum = 10000,
      .since = "0.1",
      .summary = "most messages in one database transaction",
      .help = "A worker takes what is there, never waits for more." },
    { .name = "batch_time",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, batch_time),
      .default_text = "20ms",
      .minimum = 0,
      .maximum = 3600 * SECOND,
      .since = "0.1",
      .summary = "time that handlers of a batch may use before it is committed" },
    { .name = "body_max",
      .type = WB_OPTION_SIZE,
      .offset = offsetof(wb_endpoint_config, body_max),
      .default_text = "16MiB",
      .minimum = 1,
      .maximum = GIB,
      .since = "0.1",
      .summary = "largest message body; a larger one goes to the error queue" },
    { .name = "shutdown_timeout",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, shutdown_timeout),
      .default_text = "30s",
      .minimum = 0,
      .maximum = DAY,
      .since = "0.1",
      .summary = "how long handlers in flight may take to finish after SIGTERM" },
    { .name = "slow_handler",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, slow_handler),
      .default_text = "30s",
      .minimum = 0,
      .maximum = 365 * DAY,
      .since = "1.0",
      .summary = "how long one call of a handler may take before a line says so",
      .help = "With the message's id and type and how long it has taken; again whenever twice as long has passed, and "
              "once when it returns. The handler is left alone. 0: never." },
    { .name = "handler_time_limit",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, handler_time_limit),
      .default_text = "5min",
      .minimum = 0,
      .maximum = 365 * DAY,
      .since = "0.1",
      .summary = "how long one call of a handler may take before it is taken for stuck",
      .help = "A call that takes longer is logged once, and the watchdog of systemd is fed no longer "
              "until it returns: with WatchdogSec the process is killed and started again, which loses "
              "nothing. The handler itself is left alone. 0: any call may take for ever. With handler_timeout the "
              "default is that." },
    { .name = "handler_timeout",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, handler_timeout),
      .default_text = "0",
      .minimum = 0,
      .maximum = 365 * DAY,
      .since = "1.0",
      .summary = "how long one call of a handler may take before the program ends for it",
      .help = "Nothing takes a thread back that hangs. A line names the message, the other workers finish what they have in "
              "hand, 2 s at most, and the program ends with 70, to be started again by whoever looks after it; while it stops, "
              "too, where that comes before shutdown_timeout. The message "
              "comes again, and goes to the error queue as one whose handler crashes: one that always hangs ends the program "
              "6 times (immediate_retries + 1 times where that is more), without an outbox 19 times (one less than the broker "
              "hands it out where that is fewer), and the service manager has to allow for that. With "
              "transaction_mode none it is lost, and so is what was received with it, which is warned of. "
              "Longer than slow_handler. 0: never. In a program with libwaybill only the line is written." },
    { .name = "start",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_endpoint_config, start),
      .default_text = "fail",
      .choices = starts,
      .since = "0.1",
      .summary = "what happens when broker or database are not there at the start",
      .help = "fail: the program ends. wait: the endpoint waits for them, with pauses from 1s to 30s, "
              "while other endpoints of the file run, and starts by itself. So it does when the hook open of "
              "a handler module says that something is not there, see waybill-handler(7). What waiting does "
              "not cure (a missing table or queue, refused credentials, a wrong option, a module that "
              "refuses) ends the program in both cases, whenever it is found before the endpoint runs. "
              "Settings that a module's hook check refuses are found before any endpoint asks a server." },
    { .name = "on_endpoint_failure",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_endpoint_config, on_endpoint_failure),
      .default_text = "restart",
      .choices = on_failure,
      .since = "0.1",
      .summary = "what happens when workers give up while the endpoint runs",
      .help = "A server that goes away is waited for. Workers give up where somebody must act: a "
              "table was dropped, a file is damaged, a privilege was taken away. restart: they are "
              "started again after a pause, from 1s to 1min, until it works. exit: the endpoint "
              "ends, and the program when no other endpoint is left. Other endpoints go on in "
              "both cases. An error at the start always ends the program." },
    { .name = "send_only",
      .type = WB_OPTION_BOOLEAN,
      .offset = offsetof(wb_endpoint_config, send_only),
      .default_text = "false",
      .since = "0.1",
      .summary = "the endpoint has no queue and handles nothing" },
};

static const wb_option outbox_options[] = {
    { .name = "enabled",
      .type = WB_OPTION_BOOLEAN,
      .offset = offsetof(wb_endpoint_config, outbox.enabled),
      .default_text = "false",
      .since = "0.1",
      .summary = "commit outgoing messages with the business data, and each message once" },
    { .name = "retention",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, outbox.retention),
      .default_text = "7d",
      .minimum = SECOND,
      .maximum = 3650 * DAY,
      .since = "0.1",
      .summary = "how long a message id is remembered",
      .help = "Longer than a message may take to come once more: delayed retries (waybill check warns), or days in "
              "the error queue." },
    { .name = "cleanup_interval",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, outbox.cleanup_interval),
      .default_text = "1min",
      .minimum = SECOND,
      .maximum = 365 * DAY,
      .since = "0.1",
      .summary = "how often older ids are removed, and operations looked for that nobody dispatched",
      .help = "What a process that died left behind is sent after up to two of these beyond sweep_after." },
    { .name = "sweep_after",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, outbox.sweep_after),
      .default_text = "1min",
      .minimum = SECOND,
      .maximum = 365 * DAY,
      .since = "0.1",
      .summary = "age at which operations whose message never came back are dispatched",
      .help = "The same for all who share the tables: what a session or a retry of failed messages could not send for "
              "three quarters of its own is left to the sweeper of any of them." },
};

static const wb_option deduplication_options[] = {
    { .name = "by",
      .type = WB_OPTION_LIST,
      .offset = offsetof(wb_endpoint_config, outbox.by),
      .since = "0.1",
      .summary = "how a message that came before is known: \"id\", \"position\" or both; default: by its id",
      .help = "id: one record a message, kept for the retention; it also knows what a sender sent twice. position: one "
              "row a partition, for ever; it knows what the broker delivers again, not what was sent twice, and needs "
              "a transport with positions (kafka). Alone it allows no delayed retries, whose copies may be sent twice. "
              "Both: what either knows. A group store, { plugin = \"NAME\"; ... } with the options of that persistence, "
              "names another database, which gets the ids of what is done with." },
};

static const wb_option recoverability_options[] = {
    { .name = "immediate_retries",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, recoverability.immediate_retries),
      .default_text = "5",
      .minimum = 0,
      .maximum = 1000,
      .since = "0.1",
      .summary = "how often a failed message is tried again at once",
      .help = "With transaction_mode = \"none\" nothing can be tried again; the default is 0 "
              "then." },
    { .name = "delayed_retries",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, recoverability.delayed_retries),
      .default_text = "3",
      .minimum = 0,
      .maximum = 1000,
      .since = "0.1",
      .summary = "how often it is tried again after a delay, after the immediate retries",
      .help = "Needs a transport that delays messages, or a persistence that stores delayed "
              "messages; where there is neither, and with transaction_mode = \"none\", the default is 0. "
              "A day after the first attempt there are no more, whatever the number." },
    { .name = "delay_increment",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, recoverability.delay_increment),
      .default_text = "10s",
      .minimum = INT64_C(1000000),
      .maximum = 365 * DAY,
      .since = "0.1",
      .summary = "each delayed retry waits longer than the one before, by this" },
    { .name = "delay_jitter",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, recoverability.delay_jitter),
      .default_text = "20",
      .minimum = 0,
      .maximum = 100,
      .since = "0.1",
      .summary = "percent of its delay that a delayed retry may be later, so that not all come at once" },
    { .name = "on_failure",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_endpoint_config, recoverability.on_failure),
      .choices = on_message_failure,
      .since = "0.1",
      .summary = "whether a failed message is retried later, which lets those behind it pass",
      .help = "block: no message is; immediate retries, then the error queue. "
              "delay: delayed retries come between, and later messages pass. Default: block for messages "
              "with a key on a transport that keeps the order of keys (kafka), delay for all others." },
    { .name = "rate_limit_after",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, recoverability.rate_limit_after),
      .default_text = "0",
      .minimum = 0,
      .maximum = 1000000,
      .since = "0.1",
      .summary = "after so many failed attempts in a row one is made at a time, until a message is handled",
      .help = "0: never. Whatever messages they were of; with rate_limit_wait between two attempts of the process." },
    { .name = "rate_limit_wait",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, recoverability.rate_limit_wait),
      .default_text = "1s",
      .minimum = INT64_C(1000000),
      .maximum = 3600 * SECOND,
      .since = "0.1",
      .summary = "how long such an attempt waits after the one before" },
    { .name = "error_queue",
      .type = WB_OPTION_STRING,
      .offset = offsetof(wb_endpoint_config, recoverability.error_queue),
      .default_text = "error",
      .since = "0.1",
      .summary = "where messages go that cannot be handled" },
};

static const wb_option delayed_options[] = {
    { .name = "by",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_endpoint_config, delayed_delivery.by),
      .choices = delays_by,
      .since = "0.1",
      .summary = "who keeps delayed messages; default: the transport if it can, else the store",
      .help = "transport: the broker, where it can delay by itself (amqp). store: a table of the "
              "persistence, whose poller sends what is due; messages there can be listed, cancelled and "
              "given another time. After a change waybill install must be run; what waits in a store "
              "that is no longer used is sent when it is due." },
    { .name = "number_of_retries",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, delayed_delivery.number_of_retries),
      .default_text = "0",
      .minimum = 0,
      .maximum = 1000,
      .since = "0.1",
      .summary = "how often forwarding a due message is tried again before it goes to the error queue",
      .help = "Counts what the broker refuses for the message's own sake. A destination that does "
              "not exist is not tried again; a broker that is away is waited for." },
    { .name = "time_to_trigger_store_circuit_breaker",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, delayed_delivery.store_breaker),
      .default_text = "30s",
      .minimum = SECOND,
      .maximum = DAY,
      .since = "0.1",
      .summary = "how long storing delayed messages may fail before it is a critical error" },
    { .name = "time_to_trigger_fetch_circuit_breaker",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, delayed_delivery.fetch_breaker),
      .default_text = "30s",
      .minimum = SECOND,
      .maximum = DAY,
      .since = "0.1",
      .summary = "the same of fetching those that are due" },
    { .name = "time_to_trigger_dispatch_circuit_breaker",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, delayed_delivery.dispatch_breaker),
      .default_text = "30s",
      .minimum = SECOND,
      .maximum = DAY,
      .since = "0.1",
      .summary = "the same of handing them to the broker" },
    { .name = "maximum_recovery_failures_per_second",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, delayed_delivery.failures_per_second),
      .default_text = "1",
      .minimum = 1,
      .maximum = 1000,
      .since = "0.1",
      .summary = "how often in a second what fails in the poller is tried again" },
    { .name = "on_circuit_open",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_endpoint_config, delayed_delivery.on_circuit_open),
      .default_text = "log",
      .choices = on_circuit_open,
      .since = "0.1",
      .summary = "what a critical error does",
      .help = "log: one error line, and it goes on trying. stop: the endpoint stops, and what becomes of it "
              "says on_endpoint_failure." },
};

static const wb_option audit_options[] = {
    { .name = "queue",
      .type = WB_OPTION_STRING,
      .offset = offsetof(wb_endpoint_config, audit.queue),
      .since = "0.1",
      .summary = "where a copy of each handled message goes; default: nowhere",
      .help = "The copy has the message's body, headers and id, and says when, where and by which "
              "endpoint it was handled. It leaves as surely as what the handler sends, and is kept "
              "with that in the outbox." },
};

static const wb_option session_options[] = {
    { .name = "mode",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_endpoint_config, session.mode),
      .default_text = "control_message",
      .choices = session_modes,
      .since = "0.1",
      .summary = "whether a session's commit needs the broker",
      .help = "control_message: a message to the endpoint's own queue (or to the processor's) leaves before the "
              "commit, as with NServiceBus; whoever receives it sends what a process that died has committed and not sent, "
              "within seconds. Without the broker a commit fails. store_and_forward: a commit needs the database "
              "alone. What a process that died has committed and not sent is sent by the sweeper of any "
              "instance, when it is older than outbox.sweep_after." },
    { .name = "processor_endpoint",
      .type = WB_OPTION_STRING,
      .offset = offsetof(wb_endpoint_config, session.processor_endpoint),
      .since = "0.1",
      .summary = "for a send-only endpoint: whose outbox its sessions use",
      .help = "An endpoint with outbox on the same database, in the same schema; its instances see to what sessions "
              "left behind. Its tables are made by its own waybill install." },
    { .name = "maximum_commit_duration",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, session.maximum_commit_duration),
      .default_text = "15s",
      .minimum = SECOND,
      .maximum = DAY,
      .since = "0.1",
      .summary = "how long a commit may take from its control message on; one that takes longer fails",
      .help = "Its id is closed then, and remembered like others: outbox.retention is to be longer, by a minute at least." },
    { .name = "commit_delay_increment",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, session.commit_delay_increment),
      .default_text = "2s",
      .minimum = SECOND / 1000,
      .maximum = DAY,
      .since = "0.1",
      .summary = "half of the first delay of a control message whose session has not committed; it doubles each time" },
    { .name = "connections",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(wb_endpoint_config, session.connections),
      .default_text = "16",
      .minimum = 1,
      .maximum = 1024,
      .since = "0.1",
      .summary = "most sessions of a process that are open at a time",
      .help = "Each has a connection to the database, kept for the next one, and in mode control_message one to the broker." },
};

static const wb_option http_options[] = {
    { .name = "listen",
      .type = WB_OPTION_STRING,
      .flags = WB_OPTION_REQUIRED,
      .offset = offsetof(wb_config, http.listen),
      .since = "1.0",
      .summary = "address and port: \"127.0.0.1:9464\", \"[::1]:9464\"",
      .help = "An address of this host in numbers, or localhost. Other addresses than those of the loopback need tls_cert_file, "
              "tls_key_file and token. Two processes have two: a value may be \"env:NAME\"." },
    { .name = "tls_cert_file",
      .type = WB_OPTION_PATH,
      .offset = offsetof(wb_config, http.tls_cert_file),
      .since = "1.0",
      .summary = "certificate, with those between it and its authority behind it (PEM)",
      .help = "Belongs to root or to the user that runs this, and nobody else may write it. It is read at the start." },
    { .name = "tls_key_file",
      .type = WB_OPTION_PATH,
      .offset = offsetof(wb_config, http.tls_key_file),
      .since = "1.0",
      .summary = "its private key (PEM)",
      .help = "Nobody else may read it, as with other files of secrets." },
    { .name = "token",
      .type = WB_OPTION_STRING,
      .flags = WB_OPTION_SECRET,
      .offset = offsetof(wb_config, http.token),
      .since = "1.0",
      .summary = "what who asks has to send, as Authorization: Bearer TOKEN",
      .help = "16 to 512 printable ASCII characters without blanks. The two paths below /health are answered without." },
};

static const wb_option console_options[] = {
    { .name = "write",
      .type = WB_OPTION_BOOLEAN,
      .offset = offsetof(wb_config, console.write),
      .default_text = "false",
      .since = "1.0",
      .summary = "whether who signs in may also retry, edit, archive, cancel and reschedule",
      .help = "Needs http.token. Each of these is a line of the log, with who did it." },
};

static const wb_option failures_options[] = {
    { .name = "from",
      .type = WB_OPTION_LIST,
      .flags = WB_OPTION_REQUIRED,
      .offset = offsetof(wb_endpoint_config, failures.from),
      .since = "1.0",
      .summary = "the error queues whose messages are kept: [\"error\"], or [\"error\", \"legacy.error\"]",
      .help = "1 to 16, none twice; more than one where the transport can (all of ours). The endpoint receives from them in "
              "place of a queue of its own, so no other program may, ServiceControl neither. What is retried goes back to where it "
              "failed, whichever it came from. Answers of what was retried come to the first one, and on Kafka the group is called "
              "as it is: it should stay the first. Its own failures go to recoverability.error_queue, which is NAME.error unless set, and "
              "must be another queue. It has no delayed retries: recoverability.delayed_retries is 0, and more is refused." },
    { .name = "retention",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_endpoint_config, failures.retention),
      .default_text = "30d",
      .minimum = SECOND,
      .maximum = 3650 * DAY,
      .since = "1.0",
      .summary = "how long messages are kept that were retried, handled or archived",
      .help = "From that on. A message that nobody has seen to is kept until somebody does." },
    { .name = "compress_over",
      .type = WB_OPTION_SIZE,
      .offset = offsetof(wb_endpoint_config, failures.compress_over),
      .default_text = "64KiB",
      .minimum = 0,
      .maximum = GIB,
      .since = "1.0",
      .summary = "bodies larger than this are kept compressed",
      .help = "Where that makes them smaller by an eighth or more. What is shown, exported and sent back is the body as it came, and "
              "what was kept before a change is read as ever. 0: never." },
};

const wb_config_section wb_config_sections[WB_SECTION_COUNT] = {
    [WB_SECTION_TOP] = { "", "the file", top_options, COUNT(top_options) },
    [WB_SECTION_ENDPOINT] = { "endpoints", "each endpoint", endpoint_options,
                              COUNT(endpoint_options) },
    [WB_SECTION_OUTBOX] = { "outbox", "an endpoint's outbox", outbox_options,
                            COUNT(outbox_options) },
    [WB_SECTION_RECOVERABILITY] = { "recoverability", "what becomes of failed messages",
                                    recoverability_options, COUNT(recoverability_options) },
    [WB_SECTION_DELAYED] = { "delayed_delivery", "messages that are due later", delayed_options,
                             COUNT(delayed_options) },
    [WB_SECTION_AUDIT] = { "audit", "copies of what was handled", audit_options, COUNT(audit_options) },
    [WB_SECTION_DEDUPLICATION] = { "outbox.deduplication", "how messages that came before are known",
                                   deduplication_options, COUNT(deduplication_options) },
    [WB_SECTION_FAILURES] = { "failures", "an endpoint that keeps what comes to an error queue", failures_options,
                              COUNT(failures_options) },
    [WB_SECTION_SESSION] = { "session", "transactional sessions of programs (waybill/session.h)", session_options,
                             COUNT(session_options) },
    [WB_SECTION_HTTP] = { "http", "metrics, health and status of the process by HTTP; in the file, beside endpoints",
                          http_options, COUNT(http_options) },
    [WB_SECTION_CONSOLE] = { "console", "a page for people, at the address of the group http; in the file, beside it",
                             console_options, COUNT(console_options) },
};

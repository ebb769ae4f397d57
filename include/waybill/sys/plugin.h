/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin ABI: descriptor, options, host table.
 *
 * A plugin is a shared object that exports one function,
 * `<name>_LTX_wb_plugin`, defined with WB_PLUGIN(name, descriptor). It returns a
 * const descriptor and has no side effects, so that `waybill plugins --describe`
 * may call it safely. Plugins link nothing of Waybill: what they need of the host
 * comes as a table.
 *
 * Rules for every struct that crosses the boundary. Its comment says which of these it is:
 *  - size first, append-only: its first field is its own size, filled by sizeof in its owner's
 *    compilation; a reader uses a field that was appended after 1.0 only if WB_HAS() says it is there,
 *    and compares the size with nothing else. Shorter ones and longer ones than one's own are both
 *    right: so they are never copied or set as a whole;
 *  - walked by a stride that whoever made the array says, append-only;
 *  - passed with its size, append-only;
 *  - fixed for ever;
 *  - fields are only appended, never reordered, retyped or reused; one that is called reserved is 0, whoever
 *    fills it;
 *  - flags, kinds, purposes: the host hands over those of 1.0, and what a later version appends only to a plugin
 *    that declares the capability it came with. Classes and causes that a reader does not know count as WB_FATAL
 *    and WB_CAUSE_OTHER, numbers that tell what was counted or taken as the one that promises least;
 *  - arguments belong to the caller and are valid until the call returns; objects
 *    returned through `ret_x` belong to whoever the comment names; strings in a
 *    descriptor are static;
 *  - times are int64_t nanoseconds; a deadline is absolute, on the clock of
 *    wb_host.now;
 *  - `error` is never NULL in a call of the host. It is looked at when the call fails, and wb_host.fail
 *    has filled it by then.
 *
 * A plugin must not exit, abort, fork, install signal handlers, change directory,
 * umask or locale, unwind across the boundary, or write to stdout or stderr. It does not count on
 * SIGPIPE being ignored, and its threads block all signals. It stays loaded until the process ends.
 *
 * waybill-plugin(7) has tables of what the host does after each call and class, and of its threads.
 *
 * Change log: 1.0 first version; appended before its release: WB_OPTION_PATH;
 * WB_CAP_UNINSTALL, WB_CAP_UNSUBSCRIBE, WB_CAP_REMOVE_TABLES, WB_CAP_SUBSCRIPTIONS, WB_CAP_FAILED,
 * wb_endpoint_info.subscriptions, failures and, with WB_CAP_QUEUES, queues, of which a plugin that was written before needs none; wb_finding and
 * wb_examination, for operations that need no capability: NULL, or absent, is a plugin that finds nothing;
 * WB_PLUGIN_OBSERVER, with WB_CAP_SEES_x; wb_host.progress.
 */
#ifndef WAYBILL_SYS_PLUGIN_H
#define WAYBILL_SYS_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <waybill/result.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WB_PLUGIN_MAGIC 0x57425031u /* "WBP1" */
#define WB_PLUGIN_ABI_MAJOR 1u
#define WB_PLUGIN_ABI_MINOR 0u

/** Whether a table received from the other side holds a field, not NULL. */
#define WB_HAS(table, type, field)                                                                 \
    ((table)->struct_size >= offsetof(type, field) + sizeof((table)->field) && (table)->field)

/** A copy of a size-first struct from the other side, as far as both know it: `*to` has the size of one's
 *  own, and zero where the other's is shorter. */
#define WB_COPY(to, from) wb_copy_known((to), sizeof *(to), (from))
static inline void wb_copy_known(void *to, size_t to_size, const void *from)
{
    size_t from_size;
    memcpy(&from_size, from, sizeof from_size);
    memset(to, 0, to_size);
    memcpy(to, from, from_size < to_size ? from_size : to_size);
    memcpy(to, &to_size, sizeof to_size);
}

#if defined(__GNUC__)
#define WB_PRINTF(text_at, first) __attribute__((format(printf, text_at, first)))
#define WB_PUBLIC __attribute__((visibility("default")))
#else
#define WB_PRINTF(text_at, first)
#define WB_PUBLIC
#endif

/* ---- errors ------------------------------------------------------------- */

/** Filled through wb_host.fail; opaque to plugins, owned by the host. */
typedef struct wb_error wb_error;
/* A persistence's own (sys/persistence.h, and its optional parts). */
typedef struct wb_persistence wb_persistence;
typedef struct wb_storage_session wb_storage_session;

/* Causes (waybill/result.h): what an operator must do; they decide the program's exit code when a
 * call fails while the endpoint starts. */

/* Whose fault an error is. The host decides by class and cause:
 *
 *   the server's          WB_NOT_CONNECTED and WB_IN_DOUBT, and WB_RETRY with
 *                         WB_CAUSE_SERVER (disk full, out of memory, too many
 *                         connections, shutting down, a lock that a neighbour
 *                         holds). The worker waits, with one log line; no message
 *                         counts an attempt.
 *   nobody's              WB_ABORT (deadlock, serialization failure): run again.
 *   the message's         WB_RETRY with another cause, WB_REJECT: its attempt counts
 *                         once it ran alone.
 *   the configuration's   WB_FATAL: the endpoint ends and somebody must act.
 *
 * So a plugin says WB_CAUSE_SERVER whenever another message would have failed as well. */

/* ---- host --------------------------------------------------------------- */

/** One field of a log line. Fixed for ever. */
typedef struct wb_field {
    const char *name;
    const char *value;
} wb_field;

typedef struct wb_host wb_host;

/** What the host offers one plugin instance. Size first, append-only. */
struct wb_host {
    size_t struct_size;
    /** Fill `error` and return `result`, so that a plugin writes
     *  `return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
     *  code, "could not ...: %s", text)`. Style: lower case, no period, no function
     *  names, user data quoted. Never put a secret in it. `error` may be NULL: nothing is filled. [any thread] */
    int (*fail)(const wb_host *host, wb_error *error, int result, int cause, int64_t native_code,
                const char *format, ...) WB_PRINTF(6, 7);
    /** Write a log line: constant text, data in fields. [any thread] */
    void (*log)(const wb_host *host, int level, const char *text, const wb_field *fields,
                size_t count);
    /** Monotonic clock. [any thread] */
    int64_t (*now)(void);
    /** Test builds end the process here when told to; otherwise does nothing.
     *  Call it between the steps whose order matters. Names: waybill-plugin(7). [any thread] */
    void (*crash_point)(const char *name);
    /** So many messages expired and are settled, undelivered; they are counted, with a line now
     *  and then. [any thread] */
    void (*expired)(const wb_host *host, size_t count);
    /** So much of what a long call has to do is done: install(), of many subscriptions. Who waits for it may be shown that. `total` is 0
     *  when it is not known. [the thread of the call] */
    void (*progress)(const wb_host *host, uint64_t done, uint64_t total);
};

/* ---- options ------------------------------------------------------------ */

/* Types of option, and the C type of the field at `offset`. */
#define WB_OPTION_STRING 1   /* const char *, as it was written; NULL when absent without default */
#define WB_OPTION_INTEGER 2  /* int64_t */
#define WB_OPTION_BOOLEAN 3  /* int32_t, 0 or 1 */
#define WB_OPTION_DURATION 4 /* int64_t nanoseconds; "10s", "20ms", "7d" */
#define WB_OPTION_SIZE 5     /* int64_t bytes; "16MiB" */
#define WB_OPTION_CHOICE 6   /* int32_t, index into choices */
#define WB_OPTION_MAP 7      /* const wb_option_map *; a group of name = "value" */
#define WB_OPTION_LIST 8     /* const wb_option_list *; a list of strings */
/** const char *, the absolute path of a file or a directory, or NULL. A relative one starts at the directory of the
 *  configuration file, a relative default, too. Handed over as they were written are "", what begins with a colon
 *  (":memory:") or with a scheme ("file:", "https://"), and the words in `choices`, which may be NULL. Whether
 *  something is there is the plugin's to find out. */
#define WB_OPTION_PATH 9

/* Flags of an option. */
#define WB_OPTION_REQUIRED 1u
#define WB_OPTION_SECRET 2u /* redacted everywhere; env: and file: are the usual values */
/** With WB_OPTION_SECRET: need not hold a secret (a connection string); redacted all the
 *  same, but written out in the file it is no reason for a warning. */
#define WB_OPTION_MAYBE_SECRET 4u

/** The values of an option. Fixed for ever: a type of option that needs more gets a struct of its own. */
typedef struct wb_option_map {
    size_t count;
    const char *const *names;
    const char *const *values;
} wb_option_map;

/** Fixed for ever, as wb_option_map. */
typedef struct wb_option_list {
    size_t count;
    const char *const *values;
} wb_option_list;

/** One option. Walked by wb_plugin.option_stride, append-only. The table drives parsing, validation, `--describe`, man page and
 *  sample configuration. */
typedef struct wb_option {
    const char *name;
    uint32_t type;
    uint32_t flags;
    size_t offset;            /* of the field in the plugin's configuration struct */
    /** As a user would write it, without the quotes around a single value: "5672", "true", "10s", "quorum",
     *  "[\"a\", \"b\"]"; or NULL. The loader parses it: a plugin with a default that is none is refused. */
    const char *default_text;
    int64_t minimum;          /* in the field's unit; both 0: no range */
    int64_t maximum;
    const char *const *choices; /* NULL-terminated, for WB_OPTION_CHOICE, or NULL; WB_OPTION_PATH: words that are no paths */
    const char *since;          /* "0.1" */
    const char *summary;        /* one line */
    const char *help;           /* paragraphs, or NULL */
} wb_option;

/* ---- capabilities (bits are ABI; unknown bits are ignored) ----------------
 *
 * A bit is a promise, and the operations it names are what keeps it: one without the other is a
 * load error, and so is a bit of another kind. Some promises have no operation, but a field:
 *
 *   WB_CAP_DELAY           wb_operation.deliver_at; without it the host never sets that
 *   WB_CAP_EXPIRY          a header; without it the host refuses to send what would expire
 *   WB_CAP_PUBLISH         WB_OPERATION_PUBLISH and wb_endpoint_info.types; without it the host refuses to publish
 *   WB_CAP_ORDER_PER_KEY   wb_incoming.key; with it a message that fails may hold up those behind it
 *   WB_CAP_DELIVERY_COUNT  wb_incoming.delivery_count; the host takes it as it comes, 0 where it is not kept
 *   WB_CAP_HEADER_ORDER    wb_incoming.headers; the host keeps whatever order there is
 *   WB_CAP_QUEUES          wb_endpoint_info.queues; without it an endpoint receives from one queue, its name
 *   WB_CAP_DELAY_WITH_COMMIT  wb_commit.delayed; without it delayed messages are stored behind the commit
 *
 * The conformance kit tries each that is declared. */

/* Transport: transaction modes it can honour. */
#define WB_CAP_MODE_NONE (UINT64_C(1) << 0)
#define WB_CAP_MODE_RECEIVE_ONLY (UINT64_C(1) << 1)
#define WB_CAP_MODE_SENDS_ATOMIC (UINT64_C(1) << 2)
#define WB_CAP_MODE_TRANSACTION_SCOPE (UINT64_C(1) << 3)
/* Transport: can deliver a message after a delay by itself. */
#define WB_CAP_DELAY (UINT64_C(1) << 4)
/* Transport: counts deliveries across crashes (wb_incoming.delivery_count). */
#define WB_CAP_DELIVERY_COUNT (UINT64_C(1) << 5)
/* Transport: keeps the order of messages with the same key. */
#define WB_CAP_ORDER_PER_KEY (UINT64_C(1) << 6)
/* Transport: publish and subscribe. */
#define WB_CAP_PUBLISH (UINT64_C(1) << 7)
/* Transport: a message's headers arrive in the order they were sent in, and several of one
 * name all arrive. Without it they are a set with one value a name, whichever. */
#define WB_CAP_HEADER_ORDER (UINT64_C(1) << 8)
/* Transport: a message with a time to be received (sys/expiry.h) that nobody received in that time
 * is never delivered; if the broker does not see to that, receive() settles it and tells
 * wb_host.expired. Where messages do not expire the host refuses to send such. */
#define WB_CAP_EXPIRY (UINT64_C(1) << 9)
/* Transport: each message has a place in a partition, which only grows (wb_incoming.position). */
#define WB_CAP_POSITION (UINT64_C(1) << 10)
/* Transport: says what waits for an endpoint, and removes what install() made (wb_transport_ops.depth,
 * uninstall). Without it the host removes no endpoint of this transport, and renames none. */
#define WB_CAP_UNINSTALL (UINT64_C(1) << 11)
/* Transport: a subscription stays at the broker until somebody ends it (wb_transport_ops.unsubscribe). */
#define WB_CAP_UNSUBSCRIBE (UINT64_C(1) << 12)
/* Transport: an endpoint may receive from several queues (wb_endpoint_info.queues). */
#define WB_CAP_QUEUES (UINT64_C(1) << 13)
/* Persistence: keeps an outbox. */
#define WB_CAP_OUTBOX (UINT64_C(1) << 16)
/* Persistence: keeps delayed messages. */
#define WB_CAP_DELAY_STORE (UINT64_C(1) << 17)
/* Persistence: can join a transport's transaction (wb_persistence_ops.join). */
#define WB_CAP_JOIN_TRANSPORT (UINT64_C(1) << 18)
/* Persistence: what handlers send later can be stored with the commit of their batch
 * (wb_commit.delayed), instead of behind it. */
#define WB_CAP_DELAY_WITH_COMMIT (UINT64_C(1) << 19)
/* Persistence: an id can be claimed with the commit (wb_commit.claims), and looked for without a
 * claim (wb_persistence_ops.find): what transactional sessions need. */
#define WB_CAP_CLAIM_WITH_COMMIT (UINT64_C(1) << 20)
/* Persistence: programs can write messages in SQL (sys/written.h). */
#define WB_CAP_WRITTEN (UINT64_C(1) << 21)
/* Persistence: keeps how far each partition of a transport is done with (wb_begin.positions). */
#define WB_CAP_POSITIONS (UINT64_C(1) << 22)
/* Persistence: a record can be removed once another store remembers its id (wb_begin.forgotten,
 * wb_persistence_ops.forget). */
#define WB_CAP_FORGET (UINT64_C(1) << 23)
/* Persistence: it can be that other store, for endpoints whose outbox is another persistence's: what it
 * needs of the operations is remember(), find() and clean_up(), with those from create() to close(). It
 * may have this capability and no other. */
#define WB_CAP_REMEMBER (UINT64_C(1) << 24)
/* Persistence: an endpoint's tables can be removed, or become another name's
 * (wb_persistence_ops.uninstall, rename). */
#define WB_CAP_REMOVE_TABLES (UINT64_C(1) << 25)
/* Persistence: keeps what a transport's install() subscribed to (wb_persistence_ops.note_subscriptions,
 * subscriptions), for transports whose broker does not tell. */
#define WB_CAP_SUBSCRIPTIONS (UINT64_C(1) << 26)
/* Persistence: keeps failed messages (sys/failed.h). */
#define WB_CAP_FAILED (UINT64_C(1) << 27)
/* Observer: what it is told of (sys/observer.h). */
#define WB_CAP_SEES_STARTED (UINT64_C(1) << 28)
#define WB_CAP_SEES_HANDLED (UINT64_C(1) << 29)
#define WB_CAP_SEES_FAILED (UINT64_C(1) << 30)
#define WB_CAP_SEES_SENT (UINT64_C(1) << 31)

/* ---- descriptor ---------------------------------------------------------- */

#define WB_PLUGIN_TRANSPORT 1u
#define WB_PLUGIN_PERSISTENCE 2u
#define WB_PLUGIN_OBSERVER 3u

/** What a plugin says of itself. Size first, append-only. */
typedef struct wb_plugin {
    size_t struct_size;
    uint32_t magic;
    uint32_t abi_major;
    uint32_t abi_minor_needed; /* 0 unless the plugin cannot work with an older host */
    uint32_t kind;
    const char *name; /* [a-z0-9_-]{1,64}; the same as the file's name */
    const char *version;
    const char *summary;
    uint64_t capabilities;
    const wb_option *options;
    size_t option_count;
    size_t option_stride; /* sizeof(wb_option) */
    size_t config_size;   /* of the struct that options fill */
    /** wb_transport_ops, wb_persistence_ops or wb_observer_ops, by kind. */
    const void *ops;
    /** Soname of the client library whose symbols handlers may use, or NULL. The
     *  host makes it visible to handler modules. */
    const char *client_library;
} wb_plugin;

/** Define the entry point: WB_PLUGIN(amqp, descriptor). */
#ifdef __cplusplus
#define WB_PLUGIN_LINKAGE extern "C"
#else
#define WB_PLUGIN_LINKAGE
#endif
#define WB_PLUGIN(name, descriptor)                                                                \
    WB_PLUGIN_LINKAGE WB_PUBLIC const wb_plugin *name##_LTX_wb_plugin(void);                       \
    const wb_plugin *name##_LTX_wb_plugin(void)                                                    \
    {                                                                                              \
        return &(descriptor);                                                                      \
    }

/* ---- the endpoint a plugin serves ---------------------------------------- */

/* Transport transaction modes, in the order of their promises. */
#define WB_MODE_NONE 0
#define WB_MODE_RECEIVE_ONLY 1
#define WB_MODE_SENDS_ATOMIC 2
#define WB_MODE_TRANSACTION_SCOPE 3

/* Who delays messages. */
#define WB_DELAYS_BY_NOBODY 0
#define WB_DELAYS_BY_TRANSPORT 1
#define WB_DELAYS_BY_STORE 2

/** What create() learns of the endpoint. Size first, append-only. Valid until destroy(). An endpoint that
 *  only sends has WB_MODE_NONE, no error queue and no types. */
typedef struct wb_endpoint_info {
    size_t struct_size;
    const char *name;        /* also its queue */
    const char *error_queue; /* NULL for none */
    int32_t mode;            /* WB_MODE_x, negotiated */
    int32_t outbox;          /* 1: the outbox is on */
    uint32_t concurrency;    /* number of workers, each with one session */
    uint32_t batch_max;      /* most messages a batch holds */
    /** Largest body handed to handlers. A transport still delivers a larger
     *  message, so that it can go to the error queue. */
    int64_t body_max;
    /** Types the endpoint subscribes to: those it has handlers for, but its commands. */
    const char *const *types;
    size_t type_count;
    /** Most headers, and most bytes in their names and values together, that a message
     *  is handed on with. A transport looks before it spends memory on them: of a message
     *  with more it hands on the first that fit, and `problem` says how many there were.
     *  (0 or absent: no limit.) */
    uint32_t headers_max;
    uint32_t reserved;
    int64_t headers_size_max;
    /** Types that have bases, as "Type;Base;Base": what the endpoint publishes as the first
     *  reaches the subscribers of all (sys/types.h walks the names). */
    const char *const *derived;
    size_t derived_count;
    /** Who delays the endpoint's messages, WB_DELAYS_x: install() makes and verify() looks for
     *  what that needs, queues or tables. */
    int32_t delays;
    int32_t reserved_2;
    /** Where copies of handled messages go; NULL or absent for nowhere. Like the error queue it
     *  is others', too: install() makes and verify() looks for it. */
    const char *audit_queue;
    /** Further error queues, for messages of some types; none may be named twice. As of the audit
     *  queue: install() makes and verify() looks for each. */
    const char *const *error_queues;
    size_t error_queue_count;
    /** 1: schema() and install() of a persistence also make what programs write messages with
     *  (sys/written.h). Otherwise what is there stays as it is. */
    int32_t sql_api;
    int32_t reserved_3;
    /** 1: redeliveries are known by their positions: install() makes and verify() looks for what that
     *  needs. */
    int32_t positions;
    /** 1: what the transport subscribes to is noted in the persistence: install() makes what that needs.
     *  verify() does not look for it: who runs does without. */
    int32_t subscriptions;
    /** 1: failed messages are kept (sys/failed.h): install() of a persistence makes and verify() looks for what that needs. */
    int32_t failures;
    int32_t reserved_4;
    /** Further queues that the endpoint receives from, beside `name`: WB_QUEUES_MAX at most, none named twice, none of them
     *  `name`, an error queue or the audit queue. Only a transport with WB_CAP_QUEUES is handed any; what it does then is
     *  said in sys/transport.h. Nothing is sent, published or delayed to them in the endpoint's name. NULL or absent for none. */
    const char *const *queues;
    size_t queue_count;
} wb_endpoint_info;

/** Most further queues of an endpoint. */
#define WB_QUEUES_MAX 15u

/** Called for each subscription of an endpoint; `type` is valid during the call only. Return WB_OK to go on;
 *  whatever else it returns ends the visits, and is what the call returns. */
typedef int (*wb_subscription_fn)(void *argument, const char *type);

/* ---- what would bite ------------------------------------------------------- */

/* How much. A reader takes what it does not know for WB_FINDING_WARNING. */
#define WB_FINDING_NOTE 1    /* good to know; nothing is to be done */
#define WB_FINDING_WARNING 2 /* it bites one day, or under load */
#define WB_FINDING_DANGER 3  /* messages or effects can be lost, or the endpoint cannot do its work */

/** What an examination found. Size first, append-only. Owned by the plugin, valid during the call only. */
typedef struct wb_finding {
    size_t struct_size;
    int32_t severity; /* WB_FINDING_x */
    int32_t reserved;
    /** For programs, the same in every version: 1 to 60 characters out of a-z, 0-9 and '-'. */
    const char *name;
    /** What there is, and whom it would bite when, for people: lower case, no period. Never a secret. */
    const char *text;
    /** The command, statement or setting that mends it; NULL only with WB_FINDING_NOTE. */
    const char *remedy;
} wb_finding;

/** What examine() is to look for. Size first, append-only. Owned by the host. */
typedef struct wb_examination {
    size_t struct_size;
    /** For so long, in nanoseconds, the endpoint may stand still, and its broker or its database be away:
     *  what would not last that long is a finding. */
    int64_t outage;
    /** Sessions that one process of the endpoint has open at the same time. */
    uint32_t sessions;
    uint32_t reserved;
    /** Call it for each finding, on the thread of examine(). */
    void (*found)(void *argument, const wb_finding *finding);
    void *argument;
} wb_examination;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benchmark's programs share: failure, time, bytes, message contents.
 *
 * None of it is Waybill code: the hand-written loops must not gain or lose by it.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stddef.h>
#include <stdint.h>

/* "<14 hex digits of salt and number>..." in the shape of a UUID, and its NUL. */
#define BENCH_ID_SIZE 36
#define BENCH_BODY_MAX (64u * 1024)

#define BENCH_INPUT_TYPE "Bench.PlaceOrder"
#define BENCH_OUTPUT_TYPE "Bench.OrderPlaced"

/** Print `program: text` and exit with status 1. A loop that fails keeps its promises
 *  by ending: nothing is acknowledged, and the next start resumes. [any thread] */
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/** Zeroed memory, or the end of the program. */
void *bench_zeroed(size_t size);

/** An environment variable, or `otherwise` when it is unset or empty. */
const char *bench_setting(const char *name, const char *otherwise);

/** Monotonic nanoseconds. */
int64_t bench_now(void);
/** Milliseconds since 1970. */
uint64_t bench_wall_ms(void);

/** A decimal argument from `minimum` up, or the end of the program. */
uint64_t bench_number(const char *option, const char *text, uint64_t minimum);

/** The id of message `number` of the series `salt`; writes BENCH_ID_SIZE + 1 bytes. */
void bench_message_id(char *buffer, uint64_t salt, uint64_t number);
/** The id of the one message sent because of the message `cause`: the same each time. */
void bench_caused_id(char *buffer, const void *cause, size_t cause_size);

/** An order in JSON of exactly `size` bytes (at least 64): keys repeat and values do not,
 *  so that it compresses as such messages do. Writes `size` bytes, no NUL. */
void bench_message_body(char *buffer, size_t size, uint64_t number);

/** The 13 headers of a sent message, in the order of bench_header_names. */
#define BENCH_HEADER_COUNT 13
extern const char *const bench_header_names[BENCH_HEADER_COUNT];

struct bench_envelope {
    const char *id; /* BENCH_ID_SIZE bytes and NUL, as are the next two */
    const char *conversation_id;
    const char *related_to; /* NULL when nothing caused the message */
    const char *type;
    const char *endpoint; /* that sends it */
};

/** Point `values` at the header values of a message sent now. TimeSent is formatted into
 *  `time_sent`, at least 32 bytes. */
void bench_header_values(const struct bench_envelope *envelope, char *time_sent,
                         const char *values[BENCH_HEADER_COUNT]);

/** A run of bytes that belongs to somebody else, with no NUL behind it. */
struct bench_text {
    const char *data;
    size_t size;
};

/** A growable run of bytes; all zero is empty. */
struct bench_bytes {
    unsigned char *data;
    size_t size;
    size_t capacity;
};

/** Make room for `size` more bytes. @return where they go; add to `size` what was used. */
unsigned char *bench_bytes_room(struct bench_bytes *bytes, size_t size);
void bench_bytes_put(struct bench_bytes *bytes, const void *data, size_t size);

/** SIGTERM and SIGINT set this flag instead of ending the program. */
extern volatile int bench_stopping;
void bench_stop_on_signal(void);

#endif

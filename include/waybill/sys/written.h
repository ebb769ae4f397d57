/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that programs write in SQL: an optional part of the persistence SPI. `waybill install
 * --sql-api` makes, beside the outbox' tables, what programs in any language call in a transaction
 * of their own (functions, procedures, or tables to insert into: `send`, `publish`, `claim`). What
 * was sent so is a row; the endpoint's relay fetches rows, makes messages of them, hands them to the
 * transport and removes them. A row of a transaction that rolls back never was.
 *
 * Order. Rows have numbers. Of rows with the same key a lower number was committed earlier: who
 * writes a key waits for whoever else has written it and not committed yet. Nothing follows from the
 * numbers of others: a low one may turn up late.
 *
 * Turns. One session of an endpoint at a time has the turn, and it alone is given rows, so that two
 * instances never send a key side by side. It is taken by the first fetch() that finds it free, and ends with
 * the session, however that ends. (Where a pooler gives each transaction another session it ends
 * with settle(), or with a fetch() that visits nothing.)
 *
 * Calls are made on a storage session outside of begin() and commit(). Results are those of the other
 * calls of a session (sys/persistence.h); of settle() also WB_IN_DOUBT: done or not. A row whose
 * removal is not known is fetched again, and sent again under the same id.
 *
 * Change log: 1.0 first version.
 */
#ifndef WAYBILL_SYS_WRITTEN_H
#define WAYBILL_SYS_WRITTEN_H

#include <waybill/sys/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The form of rows that is described here. What a later version wrote has another. */
#define WB_WRITTEN_FORM 1
/** What headers (as JSON) and body of a row may have, in bytes. Programs, and write(), are refused more. */
#define WB_WRITTEN_HEADERS_SIZE_MAX ((size_t)64 * 1024)
#define WB_WRITTEN_BODY_MAX ((size_t)64 * 1024 * 1024)
/** One fetch ends with the row that reaches that, of all together: types, headers, keys and bodies. */
#define WB_WRITTEN_FETCH_BYTES ((size_t)32 * 1024 * 1024)

/** A string of a row; `data` NULL: it has none. Fixed for ever. */
typedef struct wb_written_text {
    const char *data;
    size_t size;
} wb_written_text;

/** A row. Nobody has checked what a program wrote. Size first, append-only. */
typedef struct wb_written {
    size_t struct_size;
    uint64_t number; /* filled by fetch() */
    uint64_t form;   /* filled by fetch() */
    uint64_t tries;  /* filled by fetch(): how often it was postponed as tried */
    int64_t written; /* when, nanoseconds since 1970 UTC by the database's clock; 0: filled in */
    wb_written_text id;          /* of the message; NULL: the database makes one */
    wb_written_text destination; /* queue of a send; NULL: an event is published */
    wb_written_text type;
    wb_written_text headers; /* a JSON object of strings, or NULL */
    wb_written_text key;     /* 1 to 255 bytes; NULL: no order is kept */
    wb_written_text body;
} wb_written;

/** Called for each row; it is valid during the call only. Return WB_OK to go on. */
typedef int (*wb_written_fn)(void *argument, const wb_written *row);

/** What is asked for, and said beside rows. Size first, append-only. */
typedef struct wb_written_fetch {
    size_t struct_size;
    size_t limit;
    uint64_t form;  /* rows of a higher form are left alone, and so is what stands behind one with its key */
    /** Only rows with a higher number; 0: all. Of what it is given so a host sends no row that has a key: the one
     *  before it may have turned up below. A store that does not know this gives all. */
    uint64_t behind;
    uint64_t last;  /* filled: the highest number that a row has, one that waits too, or had a moment before; 0: not known */
    int32_t wants_last; /* fill `last` */
    int32_t has_turn;   /* filled: 0: another session has it, and nothing was visited */
} wb_written_fetch;

/** A row that stays. Size first, append-only; in an array of them the first one's size is what they are
 *  apart. */
typedef struct wb_written_rest {
    size_t struct_size;
    uint64_t number;
    int64_t pause;  /* ns: it is not fetched before, nor what is behind it with the same key */
    const char *reason; /* kept with the row, for people: UTF-8, or NULL */
    int32_t is_tried;   /* count it in `tries` */
    int32_t reserved;   /* 0 */
} wb_written_rest;

/** Size first, append-only. */
typedef struct wb_written_ops {
    size_t struct_size;

    /** Is the endpoint's SQL interface installed? Costs the server next to nothing, and no line of
     *  its log if it is not. */
    int (*is_installed)(wb_storage_session *session, int *ret_installed, wb_error *error);

    /** Visit what is committed and may go, by ascending number. After a fetch that visited something
     *  comes settle(), whatever became of it, or close(). */
    int (*fetch)(wb_storage_session *session, wb_written_fetch *fetch, wb_written_fn visit, void *argument,
                 wb_error *error);

    /** Remove these rows and postpone those, in one transaction that need not be flushed: what is
     *  lost means that a message is sent again. Both may be none. A row that is not there is no error. */
    int (*settle)(wb_storage_session *session, const uint64_t *removed, size_t removed_count,
                  const wb_written_rest *rests, size_t rest_count, wb_error *error);

    /** Write a row as a program does, through what is installed, and commit it: the conformance kit
     *  has no SQL. Where programs give the id of a message, so must the kit; elsewhere it may not. */
    int (*write)(wb_storage_session *session, const wb_written *row, wb_error *error);
    /** Claim a message's id (1 to 248 bytes) as a program does, and commit that. Programs' claims are deduplication
     *  records under keys of their own: clean_up() deletes them like others, begin() does not meet them. */
    int (*claim)(wb_storage_session *session, wb_written_text id, int *ret_is_new, wb_error *error);

    /** Optional. How many rows there are, of whatever form, those that wait too; whoever has the turn. Counts no further
     *  than `limit`, and takes as long as that. For people: changes nothing, and is kept waiting by nobody. */
    int (*count)(wb_storage_session *session, size_t limit, uint64_t *ret_count, wb_error *error);
} wb_written_ops;

#ifdef __cplusplus
}
#endif
#endif

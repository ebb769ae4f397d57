/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of a delayed message store, as people and programs read them.
 */
#ifndef WB_CLI_WAITING_H
#define WB_CLI_WAITING_H

#include <jansson.h>
#include <waybill/sys/delayed.h>
#include <waybill/sys/transport.h>

/** Bytes as they are, or with escapes for what a terminal must not get (base/printable.h) and \x5c for a
 *  backslash if there is any. */
void cli_waiting_print_bytes(const char *bytes, size_t size);

/** The same for programs: what is no text goes to `name_hex`, as far as an id may be long. */
void cli_waiting_set_bytes(json_t *object, const char *name, const char *name_hex, const char *bytes, size_t size);
/** A time as the log writes it. */
json_t *cli_waiting_time_json(int64_t time);

/** The headers of what is to be sent, a line each. */
void cli_waiting_print_headers(const wb_operation *operation);
json_t *cli_waiting_headers_json(const wb_operation *operation);
/** A body on stdout, as it is; on a terminal with escapes. */
void cli_waiting_print_content(const char *body, size_t size);

/** The heading of the rows. */
void cli_waiting_print_heading(void);
/** One line: when it is due, how far away that is from `now` (the database's time), whether it is
 *  taken, what it is known by. Bytes that are no text are written as \xNN. */
void cli_waiting_print_row(const wb_delayed *message, int64_t now);
/** The same for programs. An id that is no text is in id_hex instead of id; destination likewise. */
json_t *cli_waiting_json(const wb_delayed *message);

/** What there is to say of one message, with its headers; its operation was asked for. */
void cli_waiting_print(const wb_delayed *message, int64_t now);
json_t *cli_waiting_whole_json(const wb_delayed *message);
/** Its body on stdout, as it is; on a terminal with escapes. @return EX_OK, or EX_DATAERR if this version cannot read it. */
int cli_waiting_print_body(const wb_delayed *message);

#endif

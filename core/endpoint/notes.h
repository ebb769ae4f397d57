/* SPDX-License-Identifier: Apache-2.0
 *
 * What was begun with an endpoint, in its persistence: who dies in the middle of a rename or an uninstall leaves a note,
 * by which the next one tells what is his to complete from what is somebody else's. An endpoint without tables of its own,
 * or whose persistence keeps no notes, has none.
 */
#ifndef WB_ENDPOINT_NOTES_H
#define WB_ENDPOINT_NOTES_H

#include "core/endpoint/endpoint.h"

/** Whether there is a place for them. */
int wb_notes_are_kept(wb_endpoint *endpoint);

/** An uninstall was begun: kept as long as its tables are there, or until it is installed anew or the uninstall was refused. */
int wb_notes_begin_uninstall(wb_endpoint *endpoint, wb_error *error);
int wb_notes_forget_uninstall(wb_endpoint *endpoint, wb_error *error);
/** Of a transport's verify(), with its result: where what it misses was taken away by such an uninstall, say so.
 *  @return `result`. */
int wb_notes_explain(wb_endpoint *endpoint, int result, wb_error *error);

/** A rename to this endpoint's name, from `former`. What is over stays noted: a rename that is repeated has nothing to do. */
typedef enum wb_rename_state { WB_RENAME_UNKNOWN = 0, WB_RENAME_BEGUN = 1, WB_RENAME_OVER = 2 } wb_rename_state;
int wb_notes_keep_rename(wb_endpoint *endpoint, const char *former, wb_rename_state state, wb_error *error);
int wb_notes_find_rename(wb_endpoint *endpoint, const char *former, wb_rename_state *ret_state, wb_error *error);

#endif

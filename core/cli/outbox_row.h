/* SPDX-License-Identifier: Apache-2.0
 *
 * A pending row of an outbox, as people and programs read it.
 */
#ifndef WB_CLI_OUTBOX_ROW_H
#define WB_CLI_OUTBOX_ROW_H

#include <jansson.h>

#include "core/cli/outbox.h"
#include "core/endpoint/backlog.h"
#include "core/message/operations.h"
#include "core/recover/parked.h"

/** Read as far as this version can. It points into the row and the arena. */
typedef struct cli_outbox_row {
    const wb_pending *pending;
    int kind;         /* WB_ROW_x */
    wb_parked parked; /* of WB_ROW_PARKED */
    wb_operation_group *groups;
    size_t operations;
} cli_outbox_row;

cli_outbox_row cli_outbox_row_read(const wb_pending *pending, wb_arena *arena);
/** When a parked row is due, when any other was stored. Of *o the time and the pipeline are read. */
int64_t cli_outbox_row_time(const cli_outbox *o, const cli_outbox_row *row);
json_t *cli_outbox_row_json(const cli_outbox *o, const cli_outbox_row *row);

/** "send", "publish" */
const char *cli_outbox_kind_of(const wb_operation *operation);
/** The header that names its types, or NULL. */
const wb_header *cli_outbox_type_of(const wb_operation *operation);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages in files (cli/failed_line.h): out of the table, and into it.
 */
#ifndef WB_CLI_FAILED_FILE_H
#define WB_CLI_FAILED_FILE_H

#include <waybill/sys/persistence.h>

#include "core/cli/failed.h"
#include "core/pipeline/pipeline.h"

typedef struct cli_failed_table {
    const wb_persistence_ops *persistence;
    const wb_failed_ops *ops;
    wb_storage_session *session;
    int64_t body_max;     /* the largest compressed body that is read */
    size_t compress_over; /* larger bodies are kept compressed; 0: none is */
    const wb_pipeline *pipeline; /* which knows the database's time */
} cli_failed_table;

/** Write those; NULL or "-": to standard output. A file is its owner's alone to read. One that cannot be read is left out, with
 *  a message. @return EX_OK, or another with a message. */
int cli_failed_export(const cli_failed_table *table, const cli_failed *found, size_t count, const char *path);

/** Called for each that was read: whether it was added, or its key was there already. */
typedef void (*cli_failed_told)(void *argument, const cli_failed *one, int is_new);

/** Read those of a file, and add each in a transaction of its own, with its status; NULL or "-": standard input. A key that is
 *  there is left alone. @return EX_OK, or another with a message: the lines before that one have been seen to. */
int cli_failed_import(const cli_failed_table *table, const char *path, cli_failed_told tell, void *argument);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages, as people and programs read them; those that a command line asks for.
 */
#ifndef WB_CLI_FAILED_H
#define WB_CLI_FAILED_H

#include <jansson.h>
#include <waybill/sys/failed.h>

#include "core/cli/cli.h"
#include "core/failures/record.h"

/** One that is wanted; it lives in the search's arena. */
typedef struct cli_failed {
    const char *key;
    size_t key_size;
    int32_t status;
} cli_failed;

/** What is wanted. NULL, 0: whichever. */
typedef struct cli_failed_filter {
    const char *key, *id, *type, *endpoint, *queue, *reason, *group;
    int32_t status;
    int64_t from, before;
    size_t skip, limit;
} cli_failed_filter;

/** The status of that name ("failed", "retrying", "resolved", "archived", "any"); -1: there is none. */
int32_t cli_failed_status(const char *name);
const char *cli_failed_status_name(int32_t status);

/** Say why a failure cannot be read. @return EX_DATAERR. */
int cli_failed_unread(const char *key, size_t key_size, int why);

/** Whether it is wanted, but for time, status, skip and limit. */
int cli_failed_matches(const cli_failed_filter *filter, const wb_failed *failed, const wb_failed_record *record);

void cli_failed_print_heading(void);
void cli_failed_print_row(const wb_failed *failed, const wb_failed_record *record);
json_t *cli_failed_json(const wb_failed *failed, const wb_failed_record *record);
/** With its headers, and how large its body is. */
void cli_failed_print(const wb_failed *failed, const wb_failed_record *record);
json_t *cli_failed_whole_json(const wb_failed *failed, const wb_failed_record *record);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of `waybill run`: set up as the configuration says, and again when SIGHUP asks for it.
 *
 * Main thread only.
 */
#ifndef WB_CLI_LOGGING_H
#define WB_CLI_LOGGING_H

#include "core/config/configuration.h"

typedef struct cli_logging {
    char *path; /* of the configuration, whatever a handler makes the working directory */
} cli_logging;

/** Have the log go where the configuration says, as it says. @return EX_OK, or EX_CONFIG with a message. */
int cli_logging_open(cli_logging *logging, const wb_config *config);
/** Read the configuration again, and take its level, format and log file, which is opened anew. All else of it is for the
 *  next start. Where anything of it is wrong, or the file cannot be opened, one warning says so, and all is as before. */
void cli_logging_renew(const cli_logging *logging);
/** Free what it holds; the log stays as it is. */
void cli_logging_end(cli_logging *logging);

#endif

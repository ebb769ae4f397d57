/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs that remove or rename an endpoint say of what it leaves behind.
 */
#ifndef WB_CLI_REMAINS_H
#define WB_CLI_REMAINS_H

#include "core/endpoint/removal.h"

#define CLI_REMAINS_SIZE 260

/** "3 messages wait in its queue, 1 operation is pending" of what is there; "nothing waits". @return `text`. */
const char *cli_remains_text(const wb_remains *remains, char text[CLI_REMAINS_SIZE]);

/** Refuse, with the remedy; `loss` completes "--force ...". @return the exit code. */
int cli_remains_refuse(const char *endpoint, const wb_remains *remains, const char *loss);

/** Refuse where a plugin cannot remove what it made. @return the exit code. */
int cli_remains_check(const wb_endpoint_setup *setup);

#endif

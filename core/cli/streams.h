/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors 0 to 2, which handlers share with the host. When one is closed, the next that is opened gets its
 * number, a connection to a server perhaps, and whoever prints then writes into it. And that of a log file, which goes with
 * the rest where a handler closes all it finds.
 */
#ifndef WB_CLI_STREAMS_H
#define WB_CLI_STREAMS_H

/** Keep the log where it goes now, and those of the three that are closed out of use. Before any endpoint is made. */
void cli_streams_keep(void);
/** To be called now and then: what a handler closed becomes /dev/null, with a line; so has a log file that was opened anew. */
void cli_streams_look(void);

#endif

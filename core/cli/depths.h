/* SPDX-License-Identifier: Apache-2.0
 *
 * How many messages wait in the queues of the endpoints: a thread of its own asks their brokers, a few times a minute, on instances that
 * nobody else uses. So neither a worker nor who answers for the process ever waits for that; a broker that does not answer is only not
 * known.
 */
#ifndef WB_CLI_DEPTHS_H
#define WB_CLI_DEPTHS_H

#include "core/cli/hosted.h"

typedef struct cli_depths cli_depths;

/** Begin to ask for those whose transport can tell. Main thread. @return NULL: none can, or there is no thread to be had. */
cli_depths *cli_depths_begin(const cli_hosted *hosted, size_t count);
/** What the broker said last of the endpoint with that number. NULL is allowed. @return 0: it has not, or cannot, or not when it
 *  was asked last. Any thread. */
int cli_depths_of(const cli_depths *depths, size_t number, uint64_t *ret_messages);
/** Ask no more, and free it. Main thread. NULL is allowed. @return 0: a broker is still asked, and all that its thread uses has to
 *  stay. */
int cli_depths_end(cli_depths *depths);

#endif

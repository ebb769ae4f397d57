/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of the program when a handler or a hook calls exit() or one of its kind (exits.c).
 */
#ifndef WB_CLI_EXITS_H
#define WB_CLI_EXITS_H

/** From now on a handler or a hook that ends its thread or the process is named, and the process ends with 70. */
void cli_exits_watch(void);

#endif

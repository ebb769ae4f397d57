/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of the program when a handler or a hook calls exit() or one of its kind (exits.c).
 */
#ifndef WB_CLI_EXITS_H
#define WB_CLI_EXITS_H

/** From now on who ends the process but the program itself is named, and the process ends with 70: a handler or a hook,
 *  which may end its thread as well, a library, a module's thread. On the main thread, which cannot be cancelled then. */
void cli_exits_watch(void);

#endif

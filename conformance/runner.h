/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner: the process that calls the plugin.
 */
#ifndef WB_CONFORMANCE_RUNNER_H
#define WB_CONFORMANCE_RUNNER_H

#include "conformance/kit.h"

/** In a child that was forked for it: run the wanted cases from that place in the book on, up to
 *  the first that fails, and report them; then end the process. kit->number is that of the
 *  first. */
_Noreturn void wb_runner_main(wb_kit *kit, const wb_kit_book *book, size_t first);

#endif

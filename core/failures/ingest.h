/* SPDX-License-Identifier: Apache-2.0
 *
 * The handler of an endpoint with a group `failures`: keeps what comes from the error queue in the
 * endpoint's table (waybill/sys/failed.h), and takes the answers of those that were sent back and
 * handled. It is a module like any other, but for being built in.
 */
#ifndef WB_FAILURES_INGEST_H
#define WB_FAILURES_INGEST_H

#include <waybill/handler.h>

/** What stands in place of its path. */
#define WB_FAILURES_MODULE "(built in: failures)"

extern const wb_handler_module wb_failures_module;

#endif

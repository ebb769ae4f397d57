/* SPDX-License-Identifier: Apache-2.0
 *
 * What plugins say of their options when an instance is made of them: what no table of options
 * tells (options that exclude each other, a file that is not there, a value that only the client's
 * library knows to be wrong). And what handler modules say of the endpoint's settings, and whether the log file
 * could be opened.
 *
 * `waybill check` ends with it and `waybill run` begins with it, so that both say the same.
 */
#ifndef WB_ENDPOINT_REHEARSAL_H
#define WB_ENDPOINT_REHEARSAL_H

#include "core/base/error.h"
#include "core/endpoint/setup.h"

/** Make the instances of each endpoint that has a plan, of those plugins whose options are right; have
 *  a store of delayed messages judge the mode, destroy them, and have the handler modules check: no network. What fails is added to `problems` with its place (wb_plugin_place(),
 *  or where the module is named), and the endpoint is not ready then. What a plugin warns of is added as a warning; it
 *  will log it when the endpoint is created.
 *  `name`: that endpoint alone; NULL: all.
 *  Main thread, before any endpoint runs.
 *  @return WB_OK; or a class with at least one error added, of which the first is in `error`, without its place. */
int wb_setup_rehearse(wb_setup *setup, const char *name, wb_problems *problems, wb_error *error);

#endif

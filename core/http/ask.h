/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking a listener of this host, as the configuration says where it is: for `waybill status`.
 */
#ifndef WB_HTTP_ASK_H
#define WB_HTTP_ASK_H

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/config/configuration.h"

/** GET `path`, in 10 s. With TLS who answers has the first certificate of the configuration's file, whatever name, date and
 *  authority are in it, or is told nothing: neither the token nor what is asked.
 *  @return WB_OK, the answer's status and text (to be freed); WB_NOT_CONNECTED: nobody answers there; WB_FATAL. */
int wb_http_ask(const wb_http_config *config, const char *path, unsigned *ret_status, wb_buffer *text, wb_error *error);

#endif

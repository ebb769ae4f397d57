/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking a listener of this host, as the configuration says where it is: for `waybill status`.
 */
#ifndef WB_HTTP_ASK_H
#define WB_HTTP_ASK_H

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/config/configuration.h"

/** GET `path`. With TLS it has to be the certificate of the configuration, whatever name is in it.
 *  @return WB_OK, the answer's status and text (to be freed); WB_NOT_CONNECTED: nobody answers there; WB_FATAL. */
int wb_http_ask(const wb_http_config *config, const char *path, unsigned *ret_status, wb_buffer *text, wb_error *error);

#endif

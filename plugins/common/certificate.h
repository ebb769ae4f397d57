/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's certificate and its private key, as options.
 */
#ifndef WB_COMMON_CERTIFICATE_H
#define WB_COMMON_CERTIFICATE_H

#include <waybill/sys/plugin.h>

/** Both of tls_cert_file and tls_key_file are set, or none. @return WB_OK, or WB_FATAL and a filled
 *  error that names them. */
int wb_common_certificate_check(const wb_host *host, const char *tls_cert_file,
                                const char *tls_key_file, wb_error *error);

#endif

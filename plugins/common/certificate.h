/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of TLS, as options: a client's certificate and its private key, authorities.
 */
#ifndef WB_COMMON_CERTIFICATE_H
#define WB_COMMON_CERTIFICATE_H

#include <waybill/sys/plugin.h>

/** Both of tls_cert_file and tls_key_file are set, or none. @return WB_OK, or WB_FATAL and a filled
 *  error that names them. */
int wb_common_certificate_check(const wb_host *host, const char *tls_cert_file,
                                const char *tls_key_file, wb_error *error);

/** A file that an option names can be read, by the effective user; NULL is none. @return WB_OK, or WB_FATAL and a
 *  filled error that names both. */
int wb_common_file_check(const wb_host *host, const char *option, const char *path, wb_error *error);

#endif

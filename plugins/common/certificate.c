/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int wb_common_certificate_check(const wb_host *host, const char *tls_cert_file,
                                const char *tls_key_file, wb_error *error)
{
    if (!tls_cert_file == !tls_key_file)
        return WB_OK;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                      "%s is set without %s: a client certificate needs both",
                      tls_cert_file ? "tls_cert_file" : "tls_key_file",
                      tls_cert_file ? "tls_key_file" : "tls_cert_file");
}

int wb_common_file_check(const wb_host *host, const char *option, const char *path, wb_error *error)
{
    if (!path || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0)
        return WB_OK;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, errno, "%s = \"%s\" cannot be read: %s", option, path,
                      strerror(errno));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/servers.h"

#include <string.h>

static int is_name(const char *name, size_t size)
{
    return *name == '/' || *name == '@' || !memchr(name, '@', size);
}

int wb_common_servers_check(const wb_host *host, const char *option, const char *names, wb_error *error)
{
    while (names && *names) {
        names += strspn(names, ", ");
        const size_t size = strcspn(names, ", ");
        if (size && !is_name(names, size))
            return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                              "%s holds \"@\", and what stands before it may be a password, so it is not shown here: name "
                              "the server alone, with the options user and password; in a URI, write @ in a password "
                              "as %%40 and / as %%2F",
                              option);
        names += size;
    }
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-tls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Of OpenSSL; NULL: there is none, or it has them no more. */
typedef struct {
    void (*clear)(void);
    unsigned long (*first)(void);
    void (*describe)(unsigned long code, char *text, size_t size);
} openssl;

static int find(const char *name, void *function)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static int find_openssl(openssl *o)
{
    return find("ERR_clear_error", &o->clear) && find("ERR_peek_error", &o->first) &&
           find("ERR_error_string_n", &o->describe);
}

void wb_amqp_tls_forget(void)
{
    openssl o;
    if (find_openssl(&o))
        o.clear();
}

/* "error:0A00010B:SSL routines::wrong version number" */
int wb_amqp_tls_reason(char *ret_reason, size_t size)
{
    openssl o;
    char text[256];
    unsigned long code = find_openssl(&o) ? o.first() : 0;
    if (!code)
        return 0;
    o.describe(code, text, sizeof text);
    const char *reason = strrchr(text, ':');
    (void)snprintf(ret_reason, size, "%s", reason ? reason + 1 : text);
    return *ret_reason != '\0';
}

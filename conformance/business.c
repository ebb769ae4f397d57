/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/business.h"

#include <dlfcn.h>
#include <string.h>

#include "core/plugin/trust.h"

#define END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

static int is_whole(const wb_business *business)
{
    return business && business->struct_size >= END_OF(wb_business, remove) && business->interface_name &&
           business->write && business->read;
}

static int refuse(wb_error *error, const char *path, const char *reason)
{
    return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0, "module \"%s\" is refused: %s", path, reason);
}

int wb_business_load(const char *path, const wb_business **ret_business, wb_error *error)
{
    const wb_business *(*entry)(void) = NULL;
    char canonical[PATH_MAX];
    if (wb_trust_check(path, canonical, error) != WB_OK)
        return error->result;
    void *handle = dlopen(canonical, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return refuse(error, path, dlerror());
    void *address = dlsym(handle, "wb_business_entry");
    memcpy(&entry, &address, sizeof entry);
    if (!entry)
        return refuse(error, path, "it does not export \"wb_business_entry\"; put WB_BUSINESS(...) at file level");
    if (!is_whole(entry()))
        return refuse(error, path, "its table is malformed");
    *ret_business = entry();
    return WB_OK;
}

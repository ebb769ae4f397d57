/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of another major version of the ABI.
 */
#include <waybill/sys/transport.h>

static const wb_plugin descriptor = {
    .struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR + 1,
    .kind = WB_PLUGIN_TRANSPORT,
    .name = "other",
    .version = "1",
    .summary = "of another time",
};

WB_PLUGIN(other, descriptor)

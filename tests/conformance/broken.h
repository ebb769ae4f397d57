/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport with one fault: the sqlite transport, with a few operations or promises
 * exchanged. A broken transport is one file:
 *
 *   static int rollback(wb_transport_session *session, wb_error *error) { ... }
 *   BROKEN(rollback, ops.rollback = rollback)
 */
#ifndef WB_TESTS_BROKEN_H
#define WB_TESTS_BROKEN_H

#include <waybill/sys/transport.h>

const wb_plugin *sqlite_LTX_wb_plugin(void);

/* The whole one, for what still works. */
static inline const wb_transport_ops *whole(void)
{
    return sqlite_LTX_wb_plugin()->ops;
}

#define BROKEN(plugin_name, fault)                                                                 \
    WB_PUBLIC const wb_plugin *plugin_name##_LTX_wb_plugin(void);                                  \
    const wb_plugin *plugin_name##_LTX_wb_plugin(void)                                             \
    {                                                                                              \
        static wb_transport_ops ops;                                                               \
        static wb_plugin descriptor;                                                               \
        ops = *whole();                                                                            \
        descriptor = *sqlite_LTX_wb_plugin();                                                      \
        descriptor.name = #plugin_name;                                                            \
        descriptor.ops = &ops;                                                                     \
        fault;                                                                                     \
        return &descriptor;                                                                        \
    }

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * create(), open(), and what else a plugin is asked before anything connects, held to its contract: whatever it
 * answers, the host gets an instance, or a session, or one sentence that says whose fault it is.
 */
#ifndef WB_PLUGIN_INSTANCE_H
#define WB_PLUGIN_INSTANCE_H

#include <waybill/sys/observer.h>
#include <waybill/sys/persistence.h>
#include <waybill/sys/transport.h>

#include "core/base/error.h"

/** Make an instance. *ret_x is set only with WB_OK, and then never NULL.
 *  @return WB_OK, or a class with the reason in `error`: the plugin's, or ours when it gave none, or
 *  made no instance. */
int wb_transport_create(const wb_plugin *plugin, const wb_host *host, const wb_endpoint_info *endpoint,
                        const void *config, wb_transport **ret_transport, wb_error *error);
int wb_persistence_create(const wb_plugin *plugin, const wb_host *host, const wb_endpoint_info *endpoint,
                          const void *config, wb_persistence **ret_persistence, wb_error *error);
int wb_observer_create(const wb_plugin *plugin, const wb_host *host, const wb_endpoint_info *endpoint,
                       const void *config, wb_observer **ret_observer, wb_error *error);

/** Open a session: every open() of the host's goes through these. *ret_session is set only with WB_OK, and then never
 *  NULL; else it stays, whatever the plugin wrote before it failed. On the threads of open().
 *  @return what the plugin says; WB_FATAL with a reason when it says WB_OK and made no session. */
int wb_transport_open(const wb_transport_ops *ops, wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                      wb_transport_session **ret_session, wb_error *error);
int wb_persistence_open(const wb_persistence_ops *ops, wb_persistence *persistence, wb_storage_session **ret_session,
                        wb_error *error);

/** Whether it keeps delayed messages in that mode: its initialize(), likewise. */
int wb_persistence_keep_delayed(const wb_plugin *plugin, wb_persistence *persistence, int32_t mode, wb_error *error);

#endif

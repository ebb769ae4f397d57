/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/instance.h"

/* What create() answered, in words where the plugin had none. A plugin that fails without host->fail()
 * leaves the error as it was: empty. */
static int conclude(const wb_plugin *plugin, int result, int is_made, wb_error *error)
{
    if (result == WB_OK && is_made)
        return WB_OK;
    if (result == WB_OK)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, 0,
                            "plugin \"%s\" says that it was created, but made no instance: that is an error of the plugin",
                            plugin->name);
    if (result < WB_OK || result > WB_FATAL)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, 0,
                            "plugin \"%s\" was not created, with a result that is no class (%d): that is an error of the "
                            "plugin",
                            plugin->name, result);
    if (error->result == WB_OK || !error->text[0])
        return wb_error_set(error, result, WB_CAUSE_OTHER, 0,
                            "plugin \"%s\" was not created (%s), and gave no reason: that is an error of the plugin",
                            plugin->name, wb_result_name(result));
    return result;
}

int wb_transport_create(const wb_plugin *plugin, const wb_host *host, const wb_endpoint_info *endpoint,
                        const void *config, wb_transport **ret_transport, wb_error *error)
{
    const wb_transport_ops *ops = plugin->ops;
    wb_transport *made = NULL;
    wb_error_clear(error);
    int r = ops->create(host, endpoint, config, &made, error);
    if ((r = conclude(plugin, r, made != NULL, error)) == WB_OK)
        *ret_transport = made;
    return r;
}

int wb_persistence_create(const wb_plugin *plugin, const wb_host *host, const wb_endpoint_info *endpoint,
                          const void *config, wb_persistence **ret_persistence, wb_error *error)
{
    const wb_persistence_ops *ops = plugin->ops;
    wb_persistence *made = NULL;
    wb_error_clear(error);
    int r = ops->create(host, endpoint, config, &made, error);
    if ((r = conclude(plugin, r, made != NULL, error)) == WB_OK)
        *ret_persistence = made;
    return r;
}

int wb_observer_create(const wb_plugin *plugin, const wb_host *host, const wb_endpoint_info *endpoint,
                       const void *config, wb_observer **ret_observer, wb_error *error)
{
    const wb_observer_ops *ops = plugin->ops;
    wb_observer *made = NULL;
    wb_error_clear(error);
    int r = ops->create(host, endpoint, config, &made, error);
    if ((r = conclude(plugin, r, made != NULL, error)) == WB_OK)
        *ret_observer = made;
    return r;
}

/* What a plugin leaves behind when it fails may be closed already. */
static int conclude_open(const char *kind, int result, const void *session, wb_error *error)
{
    if (result != WB_OK || session)
        return result;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, 0,
                        "the %s says that it opened a session, but made none: that is an error of the plugin", kind);
}

int wb_transport_open(const wb_transport_ops *ops, wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                      wb_transport_session **ret_session, wb_error *error)
{
    wb_transport_session *made = NULL;
    int r = ops->open(transport, purpose, prefetch, &made, error);
    if ((r = conclude_open("transport", r, made, error)) == WB_OK)
        *ret_session = made;
    return r;
}

int wb_persistence_open(const wb_persistence_ops *ops, wb_persistence *persistence, wb_storage_session **ret_session,
                        wb_error *error)
{
    wb_storage_session *made = NULL;
    int r = ops->open(persistence, &made, error);
    if ((r = conclude_open("persistence", r, made, error)) == WB_OK)
        *ret_session = made;
    return r;
}

int wb_persistence_keep_delayed(const wb_plugin *plugin, wb_persistence *persistence, int32_t mode, wb_error *error)
{
    const wb_persistence_ops *ops = plugin->ops;
    wb_error_clear(error);
    int r = ops->delayed->initialize(persistence, mode, error);
    if (r == WB_OK || (error->result != WB_OK && error->text[0]))
        return r;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, 0,
                        "plugin \"%s\" does not keep delayed messages in this transaction_mode, and gave no reason: that is an "
                        "error of the plugin",
                        plugin->name);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The observer "otlp": spans for OpenTelemetry.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins/observer/otlp/otlp-exporter.h"

#define HOST_NAME_SIZE 256

struct wb_observer {
    wb_otlp_exporter exporter;
    char host_name[HOST_NAME_SIZE];
};

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config, wb_observer **ret_observer,
                  wb_error *error)
{
    const wb_otlp_config *known = config;
    int r = wb_otlp_config_check(host, known, error);
    if (r != WB_OK)
        return r;
    wb_observer *observer = calloc(1, sizeof *observer);
    if (!observer)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, ENOMEM, "out of memory");
    if (gethostname(observer->host_name, sizeof observer->host_name - 1) != 0)
        observer->host_name[0] = '\0';
    observer->exporter.host = host;
    observer->exporter.config = known;
    observer->exporter.resource =
        (wb_otlp_resource){ known->service_name ? known->service_name : endpoint->name, endpoint->name, observer->host_name };
    *ret_observer = observer;
    return WB_OK;
}

static void destroy(wb_observer *observer)
{
    free(observer);
}

static int start(wb_observer *observer, wb_error *error)
{
    return wb_otlp_exporter_start(&observer->exporter, error);
}

static void stop(wb_observer *observer, int64_t deadline)
{
    wb_otlp_exporter_stop(&observer->exporter, deadline);
}

/* The last bytes of an id are as good as random, in whatever way it was made. */
static int samples(wb_observer *observer, const unsigned char trace_id[WB_TRACE_ID_SIZE])
{
    uint64_t number = 0;
    for (size_t i = WB_TRACE_ID_SIZE - sizeof number; i < WB_TRACE_ID_SIZE; i++)
        number = number << 8 | trace_id[i];
    return number % (uint64_t)observer->exporter.config->one_in == 0;
}

static void handled(wb_observer *observer, const wb_observation *const *observations, size_t count)
{
    wb_otlp_queue_add(&observer->exporter.queue, WB_OTLP_HANDLED, observations, count);
}

static void failed(wb_observer *observer, const wb_observation *const *observations, size_t count)
{
    wb_otlp_queue_add(&observer->exporter.queue, WB_OTLP_FAILED, observations, count);
}

static void sent(wb_observer *observer, const wb_observation *const *observations, size_t count)
{
    wb_otlp_queue_add(&observer->exporter.queue, WB_OTLP_SENT, observations, count);
}

static const wb_observer_ops operations = {
    .struct_size = sizeof operations,
    .create = create,
    .destroy = destroy,
    .start = start,
    .stop = stop,
    .samples = samples,
    .handled = handled,
    .failed = failed,
    .sent = sent,
};

static const wb_plugin descriptor = {
    .struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .abi_minor_needed = 0,
    .kind = WB_PLUGIN_OBSERVER,
    .name = "otlp",
    .version = PACKAGE_VERSION,
    .summary = "spans for OpenTelemetry, over HTTP",
    .capabilities = WB_CAP_SEES_HANDLED | WB_CAP_SEES_FAILED | WB_CAP_SEES_SENT,
    .options = wb_otlp_options,
    .option_count = WB_OTLP_OPTION_COUNT,
    .option_stride = sizeof(wb_option),
    .config_size = sizeof(wb_otlp_config),
    .ops = &operations,
};

WB_PLUGIN(otlp, descriptor)

/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport kit: its cases in order.
 */
#include "config.h"

#include "core/conformance/kit.h"

size_t wb_transport_kit(const wb_endpoint_setup *endpoint, const wb_kit_options *options, FILE *out)
{
    wb_kit kit = { .endpoint = endpoint, .plugin = endpoint->transport, .options = options, .out = out };
    return wb_kit_run(&kit, NULL, 0);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler module without a database: what is sent is all there is.
 */
#include "config.h"

#include "tests/crash/effects.h"

static int send_only(wb_context *ctx, const wb_message *message, int grouped)
{
    effect e;
    int r = effect_read(ctx, message, &e);
    if (r != WB_OK)
        return r;
    effect_between_writes();
    return effect_send(ctx, &e, grouped);
}

static int plain(wb_context *ctx, const wb_message *message)
{
    return send_only(ctx, message, 0);
}

static int batch(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    int r = WB_OK;
    for (size_t i = 0; i < count && r == WB_OK; i++)
        r = send_only(ctx, messages[i], count > 1);
    return r;
}

WB_HANDLERS(WB_HANDLER("Crash.Plain", plain), WB_BATCH_HANDLER("Crash.Batch", batch))

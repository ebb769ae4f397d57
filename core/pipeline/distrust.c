/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/distrust.h"

#include "core/base/crash.h"
#include "core/base/log.h"

int wb_distrust(wb_worker *w, int result, wb_error *error)
{
    if (result != WB_FATAL || !w->storage_used || wb_bug("believe_fatal"))
        return result;
    wb_log_event(WB_LOG_WARNING, "database session refuses, which a handler may have caused: it is given up",
                 { "endpoint", w->pipeline->endpoint }, { "reason", error->text });
    w->storage_broken = w->storage_distrusted = 1;
    error->result = WB_NOT_CONNECTED;
    return WB_NOT_CONNECTED;
}

int wb_distrust_store(wb_worker *w, int result, wb_error *error)
{
    result = wb_distrust(w, result, error);
    w->storage_broken |= result == WB_NOT_CONNECTED;
    return result;
}

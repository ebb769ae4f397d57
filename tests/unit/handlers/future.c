/* SPDX-License-Identifier: Apache-2.0
 *
 * A module built with other headers: MODULE_MAJOR, MODULE_MINOR.
 */
#include <waybill/handler.h>

static int one(wb_context *context, const wb_message *message)
{
    (void)context, (void)message;
    return WB_OK;
}

/* Later headers have longer rows. */
static const struct {
    wb_handler handler;
    void *later;
} rows[] = {
    { WB_HANDLER("Future.First", one), NULL },
    { WB_HANDLER("Future.Second", one), NULL },
};

static const wb_handler_module module = {
    sizeof module, MODULE_MAJOR, MODULE_MINOR, sizeof rows[0], 2, &rows[0].handler,
};

WB_EXPORT const wb_handler_module *wb_handlers(void);
const wb_handler_module *wb_handlers(void)
{
    return &module;
}

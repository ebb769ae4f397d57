/* SPDX-License-Identifier: Apache-2.0
 *
 * A module built with other headers: MODULE_MAJOR, MODULE_MINOR; its rows are longer than ours, as its
 * table is, or with MODULE_SHORTER shorter; with MODULE_SIZE its table has that size.
 */
#include <waybill/handler.h>

static int one(wb_context *context, const wb_message *message)
{
    (void)context, (void)message;
    return WB_OK;
}

#ifdef MODULE_SHORTER
static const struct {
    const char *type;
    wb_handler_fn one;
} rows[] = { { "Future.First", one }, { "Future.Second", one } };
#else
static const struct {
    wb_handler handler;
    const void *later;
} rows[] = {
    { WB_HANDLER("Future.First", one), "more" },
    { WB_HANDLER("Future.Second", one), "more" },
};
#endif

static const struct {
    wb_handler_module module;
    const void *later;
} module = {
#ifdef MODULE_SIZE
    { .struct_size = MODULE_SIZE,
#else
    { .struct_size = sizeof module,
#endif
      .abi_major = MODULE_MAJOR,
      .abi_minor_needed = MODULE_MINOR,
      .handler_stride = sizeof rows[0],
      .handler_count = 2,
      .handlers = (const wb_handler *)(const void *)rows },
    "more",
};

WB_EXPORT const wb_handler_module *wb_handlers(void);
const wb_handler_module *wb_handlers(void)
{
    return &module.module;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the persistence of this directory offers to handlers: business data that is said when, and
 * only if, its transaction commits. Size first, append-only.
 */
#ifndef WB_TESTS_ABI_MEMORY_H
#define WB_TESTS_ABI_MEMORY_H

#include <waybill/handler.h>

#define MEMORY_INTERFACE "memory.1"
typedef struct memory_api {
    size_t struct_size;
    void (*note)(void *session, size_t item, const char *text);
} memory_api;

static inline void memory_note(wb_context *ctx, const char *text)
{
    void *session = NULL;
    size_t item = 0;
    const memory_api *api = (const memory_api *)ctx->api->storage(ctx, MEMORY_INTERFACE, &session, &item);
    if (api)
        api->note(session, item, text);
}

#endif

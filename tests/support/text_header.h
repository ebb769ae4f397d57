/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers of an operation as the host hands them to a transport: with their sizes.
 */
#ifndef WB_TESTS_SUPPORT_TEXT_HEADER_H
#define WB_TESTS_SUPPORT_TEXT_HEADER_H

#include <string.h>
#include <waybill/message.h>

/* Of two literals. */
#define TEXT_HEADER(name, value) { "" name "", "" value "", sizeof(name) - 1, sizeof(value) - 1 }

static inline wb_header text_header(const char *name, const char *value)
{
    return (wb_header){ name, value, strlen(name), strlen(value) };
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648, with padding).
 */
#ifndef WB_BASE_BASE64_H
#define WB_BASE_BASE64_H

#include <stddef.h>

#include "core/base/buffer.h"

/** Append the text of some bytes. */
void wb_base64_encode(const void *bytes, size_t size, wb_buffer *text);

/** Append the bytes of a text, which is nothing but base64. @return 0, or -1: it is not, and some may be there. */
int wb_base64_decode(const char *text, size_t size, wb_buffer *bytes);

#endif

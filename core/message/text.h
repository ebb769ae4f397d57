/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that somebody else wrote and that becomes an argument of a protocol: a destination, an
 * event type. A broker may close the connection over one that is no text.
 */
#ifndef WB_MESSAGE_TEXT_H
#define WB_MESSAGE_TEXT_H

#include <stddef.h>

/** Whether these bytes are UTF-8 (RFC 3629) without control characters. Empty is. */
int wb_text_is_plain(const char *text, size_t size);
/** Put `?` for each byte that belongs to no character of UTF-8. Returns `text`. */
char *wb_text_mend(char *text, size_t size);

#endif

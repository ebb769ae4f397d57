/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of others as a string of JSON: a library's reason may be in any encoding, and what was cut may end within a character. jansson
 * refuses both, and with it the object they are in.
 */
#ifndef WB_BASE_JSON_TEXT_H
#define WB_BASE_JSON_TEXT_H

#include <jansson.h>

/** The text, U+FFFD in the place of each byte that belongs to no character of UTF-8. @return the caller's; NULL: `text` is,
 *  which json_pack() leaves out for "o*". */
json_t *wb_json_text(const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Why operations were refused, in words that live until the session's next call.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/sqlite/transport.h"

#define REASON_SIZE 1024
#define ELLIPSIS "..."
#define LONGEST_STEP 4 /* of a name: one character, or \\xNN */

void wb_sqlite_reason_forget_all(wb_transport_session *session)
{
    while (session->reason_count)
        free(session->reasons[--session->reason_count]);
}

static const char *keep(wb_transport_session *session, const char *text)
{
    if (session->reason_count == session->reason_capacity) {
        size_t wanted = session->reason_capacity * 2 + 8;
        char **grown = realloc(session->reasons, wanted * sizeof *grown);
        if (!grown)
            return "refused";
        session->reasons = grown;
        session->reason_capacity = wanted;
    }
    char *copy = strdup(text);
    if (!copy)
        return "refused";
    return session->reasons[session->reason_count++] = copy;
}

void wb_sqlite_reason_refuse(wb_transport_session *session, wb_operation *operation, int cause,
                             const char *format, ...)
{
    char text[REASON_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    operation->result = WB_REJECT;
    operation->cause = cause;
    operation->reason = keep(session, text);
}

/* ---- names --------------------------------------------------------------------------- */

/* The size of the printable character at `text`, 0 when it is none or no UTF-8. */
static size_t printable(const unsigned char *text)
{
    size_t size = text[0] < 0x80   ? 1
                  : text[0] < 0xc2 ? 0
                  : text[0] < 0xe0 ? 2
                  : text[0] < 0xf0 ? 3
                  : text[0] < 0xf5 ? 4
                                   : 0;
    if (size == 1)
        return text[0] >= ' ' && text[0] != 0x7f;
    for (size_t i = 1; i < size; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    int is_overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    int is_no_character =
        (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return is_overlong || is_no_character ? 0 : size;
}

const char *wb_sqlite_reason_show_name(char shown[WB_SQLITE_REASON_NAME_SIZE], const char *name)
{
    size_t used = 0;
    const size_t most = WB_SQLITE_REASON_NAME_SIZE - LONGEST_STEP - sizeof ELLIPSIS;
    while (*name && used < most) {
        size_t size = printable((const unsigned char *)name);
        if (size)
            memcpy(shown + used, name, size);
        else
            (void)sprintf(shown + used, "\\x%02x", (unsigned)(unsigned char)*name);
        used += size ? size : LONGEST_STEP;
        name += size ? size : 1;
    }
    (void)strcpy(shown + used, *name ? ELLIPSIS : "");
    return shown;
}

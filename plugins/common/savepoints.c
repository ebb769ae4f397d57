/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/savepoints.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

void wb_common_savepoints_hand_out(wb_common_savepoints *of, size_t item)
{
    if (!of->has_item || of->item != item)
        of->inherited = of->count;
    of->has_item = 1;
    of->item = item;
}

void wb_common_savepoints_set(wb_common_savepoints *of)
{
    of->count++;
}

void wb_common_savepoints_release(wb_common_savepoints *of)
{
    if (of->count)
        of->count--;
}

void wb_common_savepoints_roll_back(wb_common_savepoints *of)
{
    of->went_back |= of->inherited && of->count <= of->inherited; /* it has none of its own */
}

/* ---- texts --------------------------------------------------------------------- */

static int begins(const char *at, const char *end, const char *with)
{
    const size_t size = strlen(with);
    return (size_t)(end - at) >= size && strncasecmp(at, with, size) == 0;
}

/* @return behind the next `last`, or the end. */
static const char *behind(const char *at, const char *end, const char *last)
{
    const char *found = memmem(at, (size_t)(end - at), last, strlen(last));
    return found ? found + strlen(last) : end;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && isdigit((unsigned char)*at))
        at++;
    return at;
}

/* Comments, and what stands between statements. What MySQL alone executes of a comment begins behind its number. */
const char *wb_common_sql_skip(const char *at, const char *end)
{
    while (at < end) {
        if (isspace((unsigned char)*at) || *at == ';')
            at++;
        else if (begins(at, end, "--") || *at == '#')
            at = behind(at, end, "\n");
        else if (begins(at, end, "/*!"))
            at = skip_digits(at + 3, end);
        else if (begins(at, end, "/*"))
            at = behind(at + 2, end, "*/");
        else
            break;
    }
    return at;
}

/* Behind what stands in quotes, which ends there: a doubled quote begins the next. */
static const char *skip_quoted(const char *at, const char *end)
{
    const char quote[] = { *at, 0 };
    return behind(at + 1, end, quote);
}

static const char *end_of_statement(const char *at, const char *end)
{
    if (!memchr(at, ';', (size_t)(end - at)))
        return end;
    while (at < end && *at != ';')
        at = strchr("'\"`", *at) && *at ? skip_quoted(at, end) : at + 1;
    return at;
}

void wb_common_savepoints_hear(wb_common_savepoints *of, const char *text, size_t size)
{
    const char *end = text + size;
    while (end > text && (isspace((unsigned char)end[-1]) || end[-1] == ';')) /* mostly it is one statement */
        end--;
    for (const char *at = wb_common_sql_skip(text, end); at < end; at = wb_common_sql_skip(end_of_statement(at, end), end)) {
        if (begins(at, end, "savepoint"))
            wb_common_savepoints_set(of);
        else if (begins(at, end, "release"))
            wb_common_savepoints_release(of);
        else if (begins(at, end, "rollback"))
            wb_common_savepoints_roll_back(of);
    }
}

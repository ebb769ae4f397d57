/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-words.h"

#include <stdio.h>
#include <string.h>

#include "plugins/persistence/mysql/mysql-map.h"

#define SIGNALED "45000"

/* Numbers beside those of the map whose messages hold names, and no values. */
static const unsigned names_only[] = {
    1046, 1048, 1050, 1051, 1052, 1060, 1061, 1091, 1109, 1110, 1121, 1138, 1176, /* columns and tables */
    1005, 1007, 1008, 1059, 1067, 1071, 1115, 1193, 1273, 1286, 1304, 1418, 1419, 1436, 1449,                /* making them */
    1216, 1217, 1451, 1452, 3819, 4025,                                           /* constraints */
    1242, 1263, 1264, 1265, 1305, 1318, 1365, 1644, 1701,
};

/* Numbers whose messages quote. `before` stands in front of a name that is told all the same. */
static const struct {
    unsigned code;
    const char *words;
    const char *before;
} quoting[] = {
    { 1062, "duplicate entry", "' for key '" },
    { 1586, "duplicate entry", "' for key '" },
    { 1064, "syntax error", NULL },
    { 1149, "syntax error", NULL },
    { 1292, "a value is of another type than its column or is malformed", "' for column " },
    { 1366, "a value does not fit its column", "' for column " },
    { 1367, "a number is out of range or malformed", NULL },
    { 1411, "the text of a date or time is malformed", NULL },
    { 1690, "a number is out of range", NULL },
    { 3140, "the text of a JSON value is malformed", NULL },
    { 3141, "the text of a JSON value is malformed", NULL },
    { 4038, "the text of a JSON value is malformed", NULL },
};
#define QUOTING_COUNT (sizeof quoting / sizeof quoting[0])

static size_t find_quoting(unsigned code)
{
    size_t i = 0;
    while (i < QUOTING_COUNT && quoting[i].code != code)
        i++;
    return i;
}

static int may_be_told(unsigned code, const char *sqlstate)
{
    if (strcmp(sqlstate, SIGNALED) == 0)
        return 1;
    if (find_quoting(code) < QUOTING_COUNT)
        return 0;
    for (size_t i = 0; i < sizeof names_only / sizeof names_only[0]; i++)
        if (names_only[i] == code)
            return 1;
    return mys_map(code)->code != 0;
}

static const char *find_last(const char *text, const char *words)
{
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        last = at + strlen(words);
    return last;
}

/* The name stands behind the value, which may hold the same words: the last ones count, and only what
 * looks like a name is taken for one. @return its size. */
static size_t find_name(const char *message, const char *before, const char **ret_name)
{
    static const char characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.-`";
    const char *name = before ? find_last(message, before) : NULL;
    size_t size = name ? strspn(name, characters) : 0;
    const char *rest = name ? name + size : "";
    *ret_name = name;
    return strcmp(rest, "'") == 0 || strncmp(rest, " at row ", 8) == 0 ? size : 0;
}

static const char *words_of_class(const char *sqlstate)
{
    if (strncmp(sqlstate, "22", 2) == 0)
        return "a value is not what the statement needs";
    if (strncmp(sqlstate, "23", 2) == 0)
        return "a constraint is violated";
    return "the statement failed";
}

void mys_words_describe(unsigned code, const char *sqlstate, const char *message, char *text, size_t size)
{
    const size_t i = find_quoting(code);
    const char *name = NULL;
    if (may_be_told(code, sqlstate)) {
        (void)snprintf(text, size, "%s (error %u, SQLSTATE %s)", message, code, sqlstate);
        return;
    }
    const size_t name_size = i < QUOTING_COUNT ? find_name(message, quoting[i].before, &name) : 0;
    (void)snprintf(text, size, "%s%s%.*s (error %u, SQLSTATE %s; what the server said may quote data and is not told)",
                   i < QUOTING_COUNT ? quoting[i].words : words_of_class(sqlstate), name_size ? ": " : "",
                   (int)name_size, name_size ? name : "", code, sqlstate);
}

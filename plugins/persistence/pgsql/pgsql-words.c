/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-words.h"

#include <stdio.h>
#include <string.h>

/* Kinds of errors whose primary message quotes something; a code stands before its class. NULL: this
 * one does not. */
static const struct {
    const char *sqlstate;
    const char *words;
} kinds[] = {
    { "22001", NULL }, /* too long: says the type */
    { "22003", "a number is out of range" },
    { "22007", "the text of a date or time is malformed" },
    { "22008", "a date or time is out of range" },
    { "22012", NULL }, /* division by zero */
    { "22021", "bytes are no text of the encoding" },
    { "22023", "the value of a parameter is invalid" },
    { "2203", "a JSON value is not what the statement needs" },
    { "22P02", "the text of a value is malformed" },
    { "22P03", "the bytes of a value are malformed" },
    { "22P05", "a character has no equivalent in the other encoding" },
    { "22", "a value is not what the statement needs" },
    /* exceptions of Python, Perl and the like quote what they please */
    { "38", "a function in another language failed" },
    { "39", "a function in another language misbehaved" },
    { "42601", "syntax error" },
    { "42602", "a name is malformed" },
    { "42622", "a name is too long" },
    { "HV", "a foreign server failed" },
    { "XX001", NULL }, /* data, or an index, is damaged: says which */
    { "XX002", NULL },
    { "XX", "internal error" }, /* what extensions say that name no code */
    { "", NULL },
};

static const char *own_words(const char *sqlstate)
{
    size_t i = 0;
    while (strncmp(sqlstate, kinds[i].sqlstate, strlen(kinds[i].sqlstate)) != 0)
        i++;
    return kinds[i].words;
}

static int was_raised(const PGresult *result)
{
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    return function && strcmp(function, "exec_stmt_raise") == 0;
}

/* @return NULL: the server's may be told. */
static const char *words_instead(const PGresult *result)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return sqlstate && !was_raised(result) ? own_words(sqlstate) : NULL;
}

const char *pgsql_words_of(const PGresult *result)
{
    const char *words = words_instead(result);
    if (!words)
        words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    return words ? words : "no message";
}

static void append_name(const PGresult *result, int field, const char *what, char *text, size_t size)
{
    const char *name = PQresultErrorField(result, field);
    const size_t used = strlen(text);
    if (name)
        (void)snprintf(text + used, size - used, ", %s \"%.64s\"", what, name);
}

void pgsql_words_describe(const PGresult *result, char *text, size_t size)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const int is_ours = words_instead(result) != NULL;
    size_t used;

    (void)snprintf(text, size, "%s", pgsql_words_of(result));
    if (is_ours) {
        append_name(result, PG_DIAG_TABLE_NAME, "table", text, size);
        append_name(result, PG_DIAG_COLUMN_NAME, "column", text, size);
        append_name(result, PG_DIAG_DATATYPE_NAME, "type", text, size);
        append_name(result, PG_DIAG_CONSTRAINT_NAME, "constraint", text, size);
    }
    used = strlen(text);
    (void)snprintf(text + used, size - used, " (SQLSTATE %s%s)", sqlstate ? sqlstate : "unknown",
                   is_ours ? "; what the server said may quote data: see its log" : "");
}

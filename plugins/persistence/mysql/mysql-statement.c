/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-statement.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* What the server would take anyway: its own limit for prepared statements. */
#define PARAMETERS_MAX 65535

typedef struct lexer {
    const char *at;
    wb_sql_buffer *text;
    const wb_mysql_params *params;
    int used; /* parameters */
    int is_behind_parameter; /* nothing but blanks and comments since */
    const char *refusal;
} lexer;

static const char *refuse(lexer *l, const char *reason)
{
    if (!l->refusal)
        l->refusal = reason;
    return NULL;
}

/* ---- parameters --------------------------------------------------------------- */

static int type_of(const wb_mysql_params *params, int i)
{
    return params->types ? params->types[i] : WB_MYSQL_TYPE_TEXT;
}

static size_t size_of(const wb_mysql_params *params, int i)
{
    return params->lengths ? params->lengths[i] : strlen(params->values[i]);
}

/* Digits, one point at most, and nothing that could join what stands around it. */
static int is_number(const char *text, size_t size)
{
    const char *end = text + size;
    int digits = 0;
    int points = 0;

    if (text < end && *text == '-')
        text++;
    for (; text < end; text++) {
        digits += *text >= '0' && *text <= '9';
        points += *text == '.';
        if ((*text < '0' || *text > '9') && *text != '.')
            return 0;
    }
    return digits > 0 && points <= 1;
}

static void put_number(lexer *l, const char *value, size_t size)
{
    if (!is_number(value, size)) {
        (void)refuse(l, "a parameter is not a decimal number");
        return;
    }
    const int negative = *value == '-'; /* "1 -?" must not become a comment */
    wb_sql_buffer_put(l->text, "(", (size_t)negative);
    wb_sql_buffer_put(l->text, value, size);
    wb_sql_buffer_put(l->text, ")", (size_t)negative);
}

static void put_parameter(lexer *l)
{
    const int i = l->used++;
    l->at++;
    if (i >= l->params->count) {
        (void)refuse(l, "it has more \"?\" than parameters");
        return;
    }
    const char *value = l->params->values[i];
    wb_sql_buffer_put(l->text, " ", 1);
    if (!value)
        wb_sql_buffer_put_text(l->text, "NULL");
    else if (type_of(l->params, i) == WB_MYSQL_TYPE_NUMBER)
        put_number(l, value, size_of(l->params, i));
    else if (type_of(l->params, i) == WB_MYSQL_TYPE_BINARY)
        mys_buffer_put_bytes(l->text, value, size_of(l->params, i));
    else
        mys_buffer_put_string(l->text, value, size_of(l->params, i));
    wb_sql_buffer_put(l->text, " ", 1);
    l->is_behind_parameter = 1;
}

static const char *refusal_of_params(const wb_mysql_params *params)
{
    if (params->count < 0 || params->count > PARAMETERS_MAX)
        return "the number of parameters is out of range";
    if (params->count && !params->values)
        return "it has parameters but no values";
    for (int i = 0; i < params->count; i++) {
        const int type = type_of(params, i);
        if (type < WB_MYSQL_TYPE_TEXT || type > WB_MYSQL_TYPE_NUMBER)
            return "a parameter has an unknown type";
        if (params->values[i] && type == WB_MYSQL_TYPE_BINARY && !params->lengths)
            return "a binary value needs a length";
    }
    return NULL;
}

/* ---- the statement ------------------------------------------------------------- */

/* The number of backslashes from here. */
static size_t count_backslashes(const char *at)
{
    return strspn(at, "\\");
}

/* Past a string or quoted identifier. Doubled quotes stay inside under every mode. Backslashes
 * escape in one mode and not in the other (in `...` never), which matters in front of a
 * quote only, and there only if their number is odd. */
static const char *end_of_quoted(lexer *l)
{
    const char quote = *l->at;
    const char *c = l->at + 1;

    for (;;) {
        if (*c == '\\' && quote != '`') {
            const size_t count = count_backslashes(c);
            c += count;
            if (*c == quote && count % 2)
                return refuse(l, "a backslash in front of a quote means one thing or another, "
                                 "depending on sql_mode");
        } else if (*c == quote && c[1] == quote) {
            c += 2;
        } else if (*c == quote) {
            return c + 1;
        } else if (!*c) {
            return refuse(l, "a quote is not closed");
        } else {
            c++;
        }
    }
}

static void copy_to(lexer *l, const char *end)
{
    if (!end)
        return;
    wb_sql_buffer_put(l->text, l->at, (size_t)(end - l->at));
    l->at = end;
}

/* The server joins neighbouring strings: 'a' 'b' is 'ab', and the literal of a parameter may
 * be such a string or not. */
static void take_quoted(lexer *l)
{
    if (l->is_behind_parameter && *l->at != '`')
        (void)refuse(l, "a string right behind a parameter might be joined with it");
    copy_to(l, end_of_quoted(l));
    l->is_behind_parameter = 0;
}

/* What is a blank to the server depends on the character set. */
static int is_blank(const char *from, const char *end)
{
    while (from < end && (*from <= ' ' || *from >= 0x7f))
        from++;
    return from == end;
}

static void take_text(lexer *l)
{
    const char *end = l->at + 1 + strcspn(l->at + 1, "'\"`?;#-/");
    if (!is_blank(l->at, end))
        l->is_behind_parameter = 0;
    copy_to(l, end);
}

static int is_line_comment(const char *at)
{
    return *at == '#' ||
           (at[0] == '-' && at[1] == '-' && (!at[2] || isspace((unsigned char)at[2]) ||
                                            iscntrl((unsigned char)at[2])));
}

/* A blank for a comment, except for hints to the optimizer, which are kept. */
static void take_block_comment(lexer *l)
{
    const char *end = strstr(l->at + 2, "*/");
    if (!end) {
        (void)refuse(l, "a comment is not closed");
    } else if (l->at[2] == '!' || (l->at[2] == 'M' && l->at[3] == '!')) {
        (void)refuse(l, "what stands in a comment would be executed");
    } else if (l->at[2] == '+') {
        copy_to(l, end + 2);
    } else {
        wb_sql_buffer_put(l->text, " ", 1);
        l->at = end + 2;
    }
}

static void take_line_comment(lexer *l)
{
    l->at += strcspn(l->at, "\n");
    wb_sql_buffer_put(l->text, " ", 1);
}

static int take_comment(lexer *l)
{
    if (is_line_comment(l->at))
        take_line_comment(l);
    else if (l->at[0] == '/' && l->at[1] == '*')
        take_block_comment(l);
    else
        return 0;
    return 1;
}

/* One may end with ";", and comments and blanks behind it. */
static void take_end(lexer *l)
{
    l->at++;
    while (*l->at && !l->refusal) {
        if (isspace((unsigned char)*l->at))
            l->at++;
        else if (!take_comment(l))
            (void)refuse(l, "it is more than one statement");
    }
}

static void take_token(lexer *l)
{
    switch (*l->at) {
    case '\'':
    case '"':
    case '`': take_quoted(l); break;
    case '?': put_parameter(l); break;
    case ';': take_end(l); break;
    default:
        if (take_comment(l))
            break;
        /* what follows decides whether they begin a comment, and we put blanks there */
        if (l->at[0] == '-' && l->at[1] == '-')
            (void)refuse(l, "two dashes may become a comment: write a blank between them");
        else
            take_text(l);
        break;
    }
}

/* What cannot end the transaction, has one result, and asks the client for nothing. */
static const char *refusal_of_word(const char *text, size_t size)
{
    static const char *const allowed[] = { "delete", "do",     "insert", "replace",
                                           "select", "update", "with" };
    size_t length = 0;
    while (size && (isspace((unsigned char)*text) || *text == '(')) {
        text++;
        size--;
    }
    while (length < size && isalpha((unsigned char)text[length]))
        length++;
    if (!size)
        return "it is empty";
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        if (strlen(allowed[i]) == length && strncasecmp(text, allowed[i], length) == 0)
            return NULL;
    return "only DELETE, DO, INSERT, REPLACE, SELECT, UPDATE and WITH can be deferred";
}

const char *mys_statement_render(const char *statement, const wb_mysql_params *params,
                                 wb_sql_buffer *text)
{
    static const wb_mysql_params none = { 0 };
    const size_t start = text->size;
    lexer l = { .at = statement, .text = text, .params = params ? params : &none };

    l.refusal = refusal_of_params(l.params);
    while (!l.refusal && *l.at)
        take_token(&l);
    if (!l.refusal && l.used != l.params->count)
        l.refusal = "it has less \"?\" than parameters";
    if (!l.refusal && !text->failed)
        l.refusal = refusal_of_word(text->data ? text->data + start : "", text->size - start);
    return l.refusal;
}

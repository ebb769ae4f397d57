/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/sql_schema.h"

endpoint e;

static void quote(const char *name, char *ret_quoted, size_t size)
{
    size_t at = 0;
    ret_quoted[at++] = words.quote;
    for (; *name && at + 3 < size; name++) {
        if (*name == words.quote)
            ret_quoted[at++] = *name;
        ret_quoted[at++] = *name;
    }
    ret_quoted[at++] = words.quote;
    ret_quoted[at] = '\0';
}

static void expand(char *statement, size_t size, const char *format, const char *container)
{
    char quoted[160];
    quote(container, quoted, sizeof quoted);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(statement, size, format, quoted);
#pragma GCC diagnostic pop
}

void observe_in(const char *format)
{
    char statement[512];
    expand(statement, sizeof statement, format, spare_container());
    observe(statement);
}

long long count_in(const char *table)
{
    char statement[512];
    char format[128];
    (void)snprintf(format, sizeof format, "select count(*) from %%s.%s", table);
    expand(statement, sizeof statement, format, container_of(&e.config));
    return observe_number(statement);
}

void drop_container(const char *name)
{
    char statement[512];
    expand(statement, sizeof statement, words.drop_container, name);
    observe(statement);
}

void make_container(const char *name)
{
    char statement[512];
    drop_container(name);
    expand(statement, sizeof statement, words.make_container, name);
    observe(statement);
}

int set_up_schema(void **state)
{
    (void)state;
    make_container(spare_container());
    endpoint_init(&e, "orders");
    use_container(&e.config, spare_container());
    warnings = 0;
    return 0;
}

int tear_down_schema(void **state)
{
    (void)state;
    if (e.persistence)
        endpoint_destroy(&e);
    drop_container(spare_container());
    return 0;
}

void assert_fails(int result, int wanted, int cause, const char *text)
{
    if (result != wanted || failure.cause != cause || !strstr(failure.text, text))
        fail_msg("got %d, cause %d: %s", result, failure.cause, failure.text);
    const char *password = e.config.password;
    assert_true(!password || !*password || !strstr(failure.text, password));
}

void assert_open_fails(int wanted, int cause, const char *text)
{
    wb_storage_session *s = NULL;
    endpoint_create(&e);
    assert_fails(ops->open(e.persistence, &s, &failure), wanted, cause, text);
    assert_fails(ops->verify(e.persistence, &failure), wanted, cause, text);
    assert_fails(ops->install(e.persistence, &failure), wanted, cause, text);
}

void install(endpoint *which)
{
    if (ops->install(which->persistence, &failure) != WB_OK)
        fail_msg("%s", failure.text);
}

void verify(endpoint *which)
{
    if (ops->verify(which->persistence, &failure) != WB_OK)
        fail_msg("%s", failure.text);
}

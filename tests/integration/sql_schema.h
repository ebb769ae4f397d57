/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of installing and connecting share: an endpoint in a container (a schema or a
 * database, as the server has it) beside the test's own.
 */
#ifndef SQL_SCHEMA_H
#define SQL_SCHEMA_H

#include "tests/integration/sql_server.h"

/** Configured for the spare container, which is empty; not created. */
extern endpoint e;
int set_up_schema(void **state);
int tear_down_schema(void **state);
#define TEST_SCHEMA(function)                                                                      \
    cmocka_unit_test_setup_teardown(function, set_up_schema, tear_down_schema)

void assert_fails(int result, int wanted, int cause, const char *text);
/** Neither open nor verify nor install; creates the endpoint. */
void assert_open_fails(int wanted, int cause, const char *text);
void install(endpoint *which);
void verify(endpoint *which);
/** A statement with the quoted name of the spare container in the place of %s. */
void observe_in(const char *format);
/** The rows of a table in the container of `e`. */
long long count_in(const char *table);
/** Make it anew; either takes the name as it is. */
void make_container(const char *name);
void drop_container(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixture of the server that this is compiled for.
 */
#if defined TESTS_OF_PGSQL
#include "tests/integration/pgsql_fixture.h"
#elif defined TESTS_OF_MYSQL
#include "tests/integration/mysql_fixture.h"
#endif

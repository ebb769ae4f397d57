/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests' fixture (sql_fixture.h) on PostgreSQL.
 */
#ifndef PGSQL_FIXTURE_H
#define PGSQL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>
#include <waybill/pgsql.h>
#include <waybill/sys/persistence.h>

#include "core/base/error.h"
#include "plugins/persistence/pgsql/pgsql-options.h"

/* last: its macro "fail" would hide a member of handlers' contexts */
#include <cmocka.h>

typedef pgsql_config server_config;
typedef wb_pgsql_api server_api;

#include "tests/integration/sql_fixture.h"

/** "set ..." or "reset ..." for sessions to come of our role, in this test's database alone: the
 * server is shared. */
void alter_role(const char *change);

#endif

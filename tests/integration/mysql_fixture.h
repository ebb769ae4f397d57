/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests' fixture (sql_fixture.h) on MariaDB.
 */
#ifndef MYSQL_FIXTURE_H
#define MYSQL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <waybill/mysql.h>
#include <waybill/sys/persistence.h>

#include "core/base/error.h"
#include "plugins/persistence/mysql/mysql-options.h"

/* last: its macro "fail" would hide a member of handlers' contexts */
#include <cmocka.h>

typedef mys_config server_config;
typedef wb_mysql_api server_api;

#include "tests/integration/sql_fixture.h"

#endif

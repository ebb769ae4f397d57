/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-persistence.h"

MYS_PLUGIN(mysql, "mysql", "outbox in MySQL or MariaDB", WB_CAP_WRITTEN | WB_CAP_FAILED)

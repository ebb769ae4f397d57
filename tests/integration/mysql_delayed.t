#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec "$top_srcdir/tests/support/with-servers" mariadb -- \
    "$top_builddir/tests/integration/mysql_delayed_test"

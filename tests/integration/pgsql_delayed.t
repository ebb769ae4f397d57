#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec "$top_srcdir/tests/integration/pgsql_with_server" \
    "$top_builddir/tests/integration/pgsql_delayed_test"

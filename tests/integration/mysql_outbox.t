#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# With a server of its own: it sets variables for all sessions to come.
WB_SERVER_DIR=$top_builddir/tests/integration/work/mysql_outbox
export WB_SERVER_DIR
exec "$top_srcdir/tests/support/with-servers" mariadb -- \
    "$top_builddir/tests/integration/mysql_outbox_test"

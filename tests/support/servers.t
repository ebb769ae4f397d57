#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared servers answer, and two users of them do not see each other.
. "$top_srcdir/tests/support/tap.sh"

with_servers=$top_srcdir/tests/support/with-servers
if [ "${1:-}" != inside ]; then
    trap - EXIT
    exec "$with_servers" pgsql rabbitmq -- "$0" inside
fi
other() { "$with_servers" pgsql rabbitmq -- sh -c "$1"; }

plan 6
is "the database is the one in PGDATABASE" "$(psql -XAtc 'select current_database()')" "$PGDATABASE"
is "what is committed is durable" "$(psql -XAtc "select string_agg(setting, ' ' order by name)
    from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit')")" "on on on"
is "another user shares the server" "$(other 'echo $PGPORT $AMQP_PORT')" "$PGPORT $AMQP_PORT"
ok "another user has a database of its own" test "$(other 'echo $PGDATABASE')" != "$PGDATABASE"
ok "another user has a virtual host of its own" test "$(other 'echo $AMQP_VHOST')" != "$AMQP_VHOST"
is "the exit code is the command's" "$(other 'exit 3' >/dev/null 2>&1; echo $?)" 3

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared MariaDB answers, with and without TLS; its users do not see each other.
. "$top_srcdir/tests/support/tap.sh"

with_servers=$top_srcdir/tests/support/with-servers
if [ "${1:-}" != inside ]; then
    trap - EXIT
    exec "$with_servers" mariadb -- "$0" inside
fi
sql() { # STATEMENT [OPTION...]; TLS only where a test asks for it, whatever the client's default
    sql_text=$1
    shift
    MYSQL_PWD=$MYSQL_PASSWORD mariadb --no-defaults --user="$MYSQL_USER" --port="$MYSQL_PORT" \
        --protocol=TCP --skip-ssl -N -B "$@" -e "$sql_text" "$MYSQL_DATABASE" 2>&1
}
is_cut() { # the server ends the connection this statement waits on
    sql 'do sleep(30)' >sleeper.$$ &
    sleeper=$!
    until [ "$(sql "select count(*) from information_schema.processlist
        where db = database() and info like 'do sleep%'")" = 1 ]; do :; done
    "$top_srcdir/tests/support/server" cut "$WB_SERVER_DIR/mariadb" "$MYSQL_DATABASE"
    ! wait $sleeper
    rm -f sleeper.$$
}

plan 7
is "the database is the one in MYSQL_DATABASE" "$(sql 'select database()')" "$MYSQL_DATABASE"
is "what is committed is durable" \
    "$(sql 'select @@innodb_flush_log_at_trx_commit, @@log_bin, @@innodb_doublewrite in ("1", "ON")')" \
    "1	0	1"
is "isolation is as shipped" "$(sql 'select @@tx_isolation')" REPEATABLE-READ
is "the server's certificate is signed by MYSQL_CA" \
    "$(sql "show status like 'ssl_version'" --host=localhost --ssl --ssl-ca="$MYSQL_CA" \
        --ssl-verify-server-cert)" "Ssl_version	TLSv1.3"
ok "connections to the database can be cut" is_cut
is "another user has a database of its own" \
    "$("$with_servers" mariadb -- sh -c 'test "$MYSQL_DATABASE" != "$1" && echo "$MYSQL_PORT"' \
        sh "$MYSQL_DATABASE")" "$MYSQL_PORT"
MYSQL_PASSWORD=wrong
ok "a wrong password is refused" sh -c 'test "${1#*Access denied}" != "$1"' sh "$(sql 'select 1')"

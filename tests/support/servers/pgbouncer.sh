# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# PostgreSQL behind PgBouncer in transaction mode, for `server`. PGPORT is the pooler's,
# PGSERVERPORT the server's own, and PGBOUNCERPORT the pooler's once more, for tests that have another
# PostgreSQL besides. The server crashes; the pooler goes on, as it would. Each
# transaction is given the connection that was unused for longest: what is left in a session
# is missed at once. The database "statements" is the one named postgres, in statement mode.

# shellcheck disable=SC1091
. "$here/servers/pgsql.sh"

pgbouncer_bin() {
    local bin
    bin=$(PATH=$PATH:/usr/sbin command -v pgbouncer) || lacking PgBouncer pgbouncer
    echo "$bin"
}
at_server() { (PGPORT=$PGSERVERPORT && export PGPORT && "$@"); }
pgbouncer_create() {
    local port
    pgbouncer_bin >/dev/null
    pgsql_create
    PGSERVERPORT=$(sed -n 's/^port = //p' "$data/db/postgresql.conf") port=$(free_port)
    set_env PGPORT "$port" PGBOUNCERPORT "$port" PGSERVERPORT "$PGSERVERPORT"
    echo '"postgres" ""' >"$data/users"
    cat >"$data/pgbouncer.ini" <<END
[databases]
statements = host=127.0.0.1 port=$PGSERVERPORT dbname=postgres pool_mode=statement
* = host=127.0.0.1 port=$PGSERVERPORT
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = trust
auth_file = $data/users
pool_mode = transaction
server_round_robin = 1
min_pool_size = 3
default_pool_size = 20
max_client_conn = 200
server_login_retry = 0.2
pidfile = $data/pgbouncer.pid
END
    [ "$(id -u)" != 0 ] || chown postgres "$data/users" "$data/pgbouncer.ini"
}
pgbouncer_pid() { pgsql_pid; }
pooler_pid() { # the saved one, unless it is somebody else's by now
    local pid; pid=$(saved_pid "$data/pgbouncer.pid")
    if [ -n "$pid" ] && grep -qsF -- "$data" "/proc/$pid/cmdline"; then echo "$pid"; fi
}
pgbouncer_up() { pgsql_up; }
pooler_launch() {
    local bin; bin=$(pgbouncer_bin)
    is_gone "$(pooler_pid)" || return 0
    rm -f "$data/pgbouncer.pid"
    as_postgres setsid "$bin" "$data/pgbouncer.ini" >>"$dir/pooler.log" 2>&1 </dev/null 9>&- &
    wait_until 100 $! test -s "$data/pgbouncer.pid"
}
pgbouncer_launch() {
    at_server pgsql_launch && pooler_launch && wait_until 100 "$(pgsql_pid)" pgsql_up
}
pgbouncer_crash() { pgsql_crash; }
pgbouncer_halt() { pgsql_halt; }
pgbouncer_clean_up() {
    local pid; pid=$(pooler_pid)
    is_gone "$pid" || { kill "$pid" && await_end "$pid"; }
}
pgbouncer_space() { at_server pgsql_space "$1"; }
pgbouncer_unspace() { at_server pgsql_unspace "$1"; }
pgbouncer_cut() { at_server pgsql_cut "$1"; }

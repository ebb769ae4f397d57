# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# A streaming standby of the PostgreSQL in PGHOST and PGPORT, for `server`: it takes no writes
# until it is promoted (select pg_promote()). SERVER_PORT is where it is to listen, else a
# free port.

# shellcheck disable=SC1091
. "$here/servers/pgsql.sh"

pgstandby_create() {
    local bin port
    bin=$(pgsql_bin) port=${SERVER_PORT:-$(free_port)}
    [ "$(id -u)" != 0 ] || chown postgres "$data"
    as_postgres "$bin/pg_basebackup" -D "$data/db" -h "$PGHOST" -p "$PGPORT" -U "$PGUSER" \
        --checkpoint=fast --write-recovery-conf --no-sync >"$dir/basebackup.log" 2>&1 ||
        { cat "$dir/basebackup.log" >&2; die "pg_basebackup failed"; }
    echo "port = $port" >>"$data/db/postgresql.conf"
    set_env PGHOST 127.0.0.1 PGPORT "$port" PGUSER postgres PGDATABASE postgres
}
pgstandby_pid() { pgsql_pid; }
pgstandby_up() { pgsql_up; }
pgstandby_launch() { pgsql_launch; }
pgstandby_crash() { pgsql_crash; }
pgstandby_halt() { pgsql_halt; }
pgstandby_clean_up() { :; }
pgstandby_space() { pgsql_space "$1"; }
pgstandby_unspace() { pgsql_unspace "$1"; }
pgstandby_cut() { pgsql_cut "$1"; }

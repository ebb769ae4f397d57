# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# PostgreSQL, for `server`. A space is a database.

pgsql_bin() {
    local bin
    bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
    [ -n "$bin" ] || bin=$(dirname "$(command -v initdb 2>/dev/null || true)" 2>/dev/null)
    [ -x "$bin/initdb" ] || lacking PostgreSQL postgresql
    echo "$bin"
}
as_postgres() { # initdb and postgres refuse to run as root
    if [ "$(id -u)" = 0 ]; then (cd / && exec runuser -u postgres -- "$@"); else "$@"; fi
}
pgsql_create() {
    local bin port
    bin=$(pgsql_bin) port=$(free_port)
    [ "$(id -u)" != 0 ] || chown postgres "$data"
    as_postgres "$bin/initdb" -D "$data/db" -A trust -U postgres -E UTF8 --locale=C \
        --no-sync >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; die "initdb failed"; }
    # fsync and synchronous_commit stay on: what a crash may lose is what the tests ask
    cat >>"$data/db/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 200
max_prepared_transactions = 4
shared_buffers = 64MB
log_line_prefix = '%m [%p] '
END
    own_configuration >>"$data/db/postgresql.conf"
    set_env PGHOST 127.0.0.1 PGPORT "$port" PGUSER postgres PGDATABASE postgres
}
pgsql_pid() { server_pid "$data/db/postmaster.pid"; }
pgsql_sql() { "$(pgsql_bin)/psql" -X -q -d postgres -c "$1"; }
pgsql_up() { listens "$PGPORT" && pgsql_sql 'select 1' >/dev/null 2>&1; }
pgsql_launch() {
    local bin; bin=$(pgsql_bin)
    as_postgres setsid "$bin/postgres" -D "$data/db" >>"$dir/log" 2>&1 </dev/null 9>&- &
    wait_until 600 $! pgsql_up
}
pgsql_crash() { as_postgres "$(pgsql_bin)/pg_ctl" -D "$data/db" stop -s -m immediate; }
pgsql_halt() { as_postgres "$(pgsql_bin)/pg_ctl" -D "$data/db" stop -s -m fast; }
pgsql_clean_up() { :; }
pgsql_space() { pgsql_sql "create database \"$1\""; }
pgsql_unspace() { pgsql_sql "drop database if exists \"$1\" with (force)"; }
pgsql_cut() {
    pgsql_sql "select pg_terminate_backend(pid) from pg_stat_activity where datname = '$1'" >/dev/null
}

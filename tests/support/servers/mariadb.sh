# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# MariaDB, for `server`. A space is a database. The tests' user is `waybill`, by TCP and
# with a password; the administrator comes through the socket and is known by his account.

mariadb_bin() { command -v mariadbd 2>/dev/null || ls /usr/sbin/mariadbd 2>/dev/null; }
as_mysql() { # mariadbd refuses to run as root
    if [ "$(id -u)" = 0 ]; then (cd / && exec runuser -u mysql -- "$@"); else "$@"; fi
}
# A certificate for localhost and who signed it; P-256 keys take no time.
mariadb_certificates() {
    local tls=$data/tls
    local new=(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30)
    mkdir "$tls"
    "${new[@]}" -subj "/CN=Waybill tests" -keyout "$tls/ca.key" -out "$tls/ca.pem" &&
        "${new[@]}" -CA "$tls/ca.pem" -CAkey "$tls/ca.key" -subj /CN=localhost \
            -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" \
            -addext "basicConstraints=critical,CA:false" \
            -keyout "$tls/server.key" -out "$tls/server.pem"
}
mariadb_create() {
    local port password
    mariadb_bin >/dev/null || lacking MariaDB mariadb-server
    command -v openssl >/dev/null || lacking OpenSSL openssl
    port=$(free_port)
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    mariadb_certificates >"$dir/openssl.log" 2>&1 ||
        { cat "$dir/openssl.log" >&2; die "no certificates"; }
    # What is not here is as shipped: the isolation level, the strict mode, doublewrite.
    # There is no binlog, so a commit is one fsync, of the redo log. Temporary tables lie apart:
    # a server that starts removes all it finds beside its own.
    mkdir "$data/tmp"
    cat >"$data/my.cnf" <<END
[mariadbd]
datadir = $data/db
tmpdir = $data/tmp
socket = $data/socket
pid_file = $data/pid
bind_address = 127.0.0.1
port = $port
skip_name_resolve
skip_log_bin
innodb_flush_log_at_trx_commit = 1
innodb_buffer_pool_size = 64M
innodb_log_file_size = 32M
max_connections = 200
character_set_server = utf8mb4
collation_server = utf8mb4_general_ci
ssl_cert = $data/tls/server.pem
ssl_key = $data/tls/server.key
ssl_ca = $data/tls/ca.pem
END
    own_configuration >>"$data/my.cnf"
    cat >"$data/users.sql" <<END
flush privileges;
create user waybill@'%' identified by '$password';
grant all on *.* to waybill@'%' with grant option;
create database waybill;
END
    chmod 600 "$data/users.sql"
    [ "$(id -u)" != 0 ] || chown -R mysql "$data"
    as_mysql mariadb-install-db --defaults-file="$data/my.cnf" --skip-test-db \
        --auth-root-authentication-method=socket --auth-root-socket-user="$(id -un)" \
        --extra-file="$data/users.sql" >"$dir/install.log" 2>&1 ||
        { cat "$dir/install.log" >&2; die "mariadb-install-db failed"; }
    set_env MYSQL_HOST 127.0.0.1 MYSQL_PORT "$port" MYSQL_USER waybill \
        MYSQL_PASSWORD "$password" MYSQL_DATABASE waybill MYSQL_SOCKET "$data/socket" \
        MYSQL_CA "$data/tls/ca.pem"
}
mariadb_pid() { server_pid "$data/pid"; }
mariadb_sql() { # as the administrator; MYSQL_HOST would lead elsewhere
    mariadb --no-defaults --user="$(id -un)" --host=localhost --protocol=SOCKET --skip-ssl \
        --socket="$data/socket" -N -B -e "$1"
}
mariadb_up() { # the tests' own way in
    listens "$MYSQL_PORT" &&
        MYSQL_PWD=$MYSQL_PASSWORD mariadb --no-defaults --user="$MYSQL_USER" --protocol=TCP --skip-ssl \
            --host="$MYSQL_HOST" --port="$MYSQL_PORT" -e 'select 1' >/dev/null 2>&1
}
mariadb_launch() {
    rm -f "$data/pid" # a crash leaves it
    as_mysql setsid "$(mariadb_bin)" --defaults-file="$data/my.cnf" >>"$dir/log" 2>&1 </dev/null 9>&- &
    wait_until 600 $! mariadb_up
}
mariadb_crash() { local pid; pid=$(mariadb_pid); kill -KILL "$pid" && await_end "$pid"; }
mariadb_halt() { local pid; pid=$(mariadb_pid); kill -TERM "$pid" && await_end "$pid"; }
mariadb_clean_up() { :; }
mariadb_space() { mariadb_sql "create database \`$1\`"; }
mariadb_unspace() { mariadb_sql "drop database if exists \`$1\`"; }
mariadb_cut() {
    local kills
    kills=$(mariadb_sql "select concat('kill ', id, ';') from information_schema.processlist
        where db = '$1'")
    # a connection that went away in between is no error
    mariadb_sql "$kills" 2>/dev/null || true
}

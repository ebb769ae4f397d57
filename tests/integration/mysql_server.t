#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# With a server of its own: it is killed, its settings are changed, its disk runs full.
server=$top_srcdir/tests/support/server
directory=$(mktemp -d "${TMPDIR:-/tmp}/waybill-mysql.XXXXXX") || exit 99
disk=$(mktemp -d "${TMPDIR:-/tmp}/waybill-disk.XXXXXX") || exit 99
end() {
    code=$?
    [ ! -f "$directory/kind" ] || "$server" stop "$directory"
    [ "$code" = 0 ] || [ "$code" = 77 ] || tail -n 50 "$directory"/*log | sed 's/^/# /'
    "$top_srcdir/tests/support/disk" remove "$disk"
    rm -rf "$directory"
    exit "$code"
}
trap end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'exit 129' HUP
"$top_srcdir/tests/support/disk" make "$disk" mysql || exit 99
# shellcheck disable=SC2046
env $("$top_srcdir/tests/support/disk" environment "$disk") "$server" start mariadb "$directory" \
    2>"$directory/message" || {
    code=$?
    if [ $code = 77 ] && [ -z "${CI:-}" ]; then
        echo "1..0 # SKIP $(cat "$directory/message")"
        exit 77
    fi
    cat "$directory/message" >&2
    echo "Bail out! MariaDB did not start"
    exit 99
}
eval "$("$server" env "$directory")"
"$top_builddir/tests/integration/mysql_server_test" "$directory" "$disk"

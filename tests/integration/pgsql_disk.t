#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# With a server of its own, a part of which is on a disk that runs full.
support=$top_srcdir/tests/support
directory=$(mktemp -d "${TMPDIR:-/tmp}/waybill-pgsql.XXXXXX") || exit 99
disk=$(mktemp -d "${TMPDIR:-/tmp}/waybill-disk.XXXXXX") || exit 99
end() {
    code=$?
    [ ! -f "$directory/kind" ] || "$support/server" stop "$directory"
    [ "$code" = 0 ] || [ "$code" = 77 ] || tail -n 50 "$directory"/*log | sed 's/^/# /'
    "$support/disk" remove "$disk"
    rm -rf "$directory"
    exit "$code"
}
trap end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'exit 129' HUP
"$support/disk" make "$disk" postgres || exit 99
# shellcheck disable=SC2046
env $("$support/disk" environment "$disk") "$support/server" start pgsql "$directory" \
    2>"$directory/message" || {
    code=$?
    if [ $code = 77 ] && [ -z "${CI:-}" ]; then
        echo "1..0 # SKIP $(cat "$directory/message")"
        exit 77
    fi
    cat "$directory/message" >&2
    echo "Bail out! PostgreSQL did not start"
    exit 99
}
eval "$("$support/server" env "$directory")"
"$top_builddir/tests/integration/pgsql_disk_test" "$disk"

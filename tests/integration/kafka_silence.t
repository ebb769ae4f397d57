#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kafka transport and a cluster of its own, of which one node is down.
server=$top_srcdir/tests/support/server
directory=$(mktemp -d "${TMPDIR:-/tmp}/waybill-kafka.XXXXXX") || exit 99
end() {
    code=$?
    [ ! -f "$directory/kind" ] || "$server" stop "$directory"
    rm -rf "$directory"
    exit "$code"
}
trap end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'exit 129' HUP
"$server" start kafka3 "$directory" 2>"$directory/message" || {
    code=$?
    if [ $code = 77 ] && [ -z "${CI:-}" ]; then
        echo "1..0 # SKIP $(cat "$directory/message")"
        exit 77
    fi
    cat "$directory/message" >&2
    echo "Bail out! Kafka did not start"
    exit 99
}
eval "$("$server" env "$directory")"
"$server" crash-node "$directory" 2 >&2
"$top_builddir/tests/integration/kafka_silence"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kafka transport and a broker of its own, which it kills.
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
"$server" start kafka "$directory" 2>"$directory/message" || {
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
KAFKA_CRASH="'$server' crash '$directory' >&2"
KAFKA_RESTART="'$server' restart '$directory' >&2"
export KAFKA_CRASH KAFKA_RESTART
"$top_builddir/tests/integration/kafka_faults"

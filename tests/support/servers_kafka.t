#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared Kafka makes topics as soon as it is up, also after a crash; a cluster goes on
# without one of its nodes and takes it back.
. "$top_srcdir/tests/support/tap.sh"

support=$top_srcdir/tests/support
if [ "${1:-}" != inside ]; then
    trap - EXIT
    exec "$support/with-servers" kafka -- "$0" inside
fi
dir=tests/servers_kafka.$$
trap 'code=$?; "$support/server" stop "$dir" 2>/dev/null; rm -rf "$dir"; (exit $code); tap_end' EXIT
trap 'exit 1' HUP INT TERM

node() { echo "$KAFKA_BROKERS" | cut -d , -f "$1"; }
await() { # WANTED COMMAND...: what it prints becomes WANTED within half a minute
    wanted=$1
    shift
    until_time=$(($(date +%s) + 30))
    until got=$("$@") && [ "$got" = "$wanted" ]; do
        [ "$(date +%s)" -lt $until_time ] || { echo "got: $got"; return 1; }
        sleep 0.1
    done
}

plan 8
is "the shared server is one node" "$("$support/kafka-metadata" "$KAFKA_BROKERS")" 1
ok "it makes a topic" await "1 1" "$support/kafka-metadata" "$KAFKA_BROKERS" "$KAFKA_PREFIX-topic"

ok "a cluster starts" "$support/server" start kafka3 "$dir"
eval "$("$support/server" env "$dir")"
is "it has three nodes" "$("$support/kafka-metadata" "$(node 3)")" "1 2 3"
"$support/server" crash-node "$dir" 2
ok "it notices that one died" await "1 3" "$support/kafka-metadata" "$(node 1)"
ok "two are up" "$support/server" up "$dir"
ok "the dead one starts again" "$support/server" restart-node "$dir" 2
ok "the others know it" await "1 2 3" "$support/kafka-metadata" "$(node 1)"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A message whose handler ends the process reaches the error topic after some restarts, and holds
# up nobody: the delivery count is kept beside the committed offset.
if [ -z "${KAFKA_BROKERS:-}" ]; then
    exec "$top_srcdir/tests/support/with-servers" kafka -- bash "$0"
fi
# shellcheck source=tests/support/tap.sh
. "$top_srcdir/tests/support/tap.sh"
umask 022
dir=$(mktemp -d "${TMPDIR:-/tmp}/waybill-poison.XXXXXX") || exit 99
pid=
end() {
    [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
    rm -rf "$dir"
}
trap end EXIT
waybill=$top_builddir/waybill
export WAYBILL_PLUGIN_DIR=$top_builddir/plugins WB_TRACE=$dir/trace
cat >"$dir/conf" <<END
endpoints = ( { name = "${KAFKA_PREFIX}poison";
  handlers = [ "$top_builddir/tests/integration/.libs/kafka_suicide.so" ];
  transport = { plugin = "kafka"; brokers = "$KAFKA_BROKERS"; partitions = 1;
    properties = [ "linger.ms=5", "retry.backoff.ms=50" ]; };
  persistence = { plugin = "sqlite"; file = "$dir/store.db"; };
  outbox = { enabled = true; };
  recoverability = { delayed_retries = 0; error_queue = "${KAFKA_PREFIX}poison.error"; }; } );
END
"$waybill" install -c "$dir/conf" 2>"$dir/log" || { cat "$dir/log"; exit 99; }
for i in $(seq 1 30); do
    body=$i
    [ "$i" != 12 ] || body=poison
    printf '{"id": "m%d", "body": "%s"}\n' "$i" "$body"
done >"$dir/messages"
"$waybill" send -c "$dir/conf" -d "${KAFKA_PREFIX}poison" -t Test.Work -l "$dir/messages" \
    >/dev/null 2>"$dir/log" || { cat "$dir/log"; exit 99; }

deaths=0
moved() { grep -q 'moved to the error queue' "$dir/log"; }
handled() { [ -f "$dir/trace" ] && [ "$(sort -u "$dir/trace" | wc -l)" = 29 ]; }
while [ $deaths -lt 15 ]; do
    "$waybill" run -c "$dir/conf" >"$dir/log" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null && ! { moved && handled; }; do sleep 0.05; done
    moved && handled && break
    wait "$pid"
    deaths=$((deaths + 1))
done
echo "# $deaths deaths"
plan 4
refused() {
    sed 's/retry.backoff.ms=50/acks=1/' "$dir/conf" >"$dir/refused"
    "$waybill" run -c "$dir/refused" >/dev/null 2>"$dir/check"
    [ $? = 78 ] && grep -q '"acks" is refused' "$dir/check"
}
ok "properties are a list of texts; one that breaks a promise ends the start" refused
in_time() { moved && [ $deaths -lt 12 ]; }
ok "the message is in the error queue after less than a dozen deaths" in_time
ok "all others were handled" handled
kill -TERM "$pid"
wait "$pid"
is "the endpoint stops in order" $? 0
pid=

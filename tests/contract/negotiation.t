#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every combination of transport, persistence, mode, outbox and retries has its line.
set -u
here=$top_srcdir/tests/contract
table=$top_builddir/tests/contract/negotiation_table
work=$(mktemp -d /tmp/waybill-contract-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT

ok() { # ok STATUS NUMBER NAME FILE
    if [ "$1" -eq 0 ]; then echo "ok $2 - $3"; return; fi
    echo "not ok $2 - $3"
    head -40 "$4" | sed 's/^/# /'
}

echo 1..6
"$table" >"$work/table" && diff "$here/negotiation.expected" "$work/table" >"$work/diff"
ok $? 1 'the negotiation answers as expected' "$work/diff"
${AWK:-awk} -f "$here/negotiation.awk" | diff "$here/negotiation.expected" - >"$work/derived"
ok $? 2 'the expectation is what the rules say' "$work/derived"
# 4 transports, 7 persistences, 4 modes and none given, outbox, immediate, delayed or not said, by whom or not said;
# and without the last but how messages that came before are known
test "$(sort -u "$work/table" | wc -l)" -eq $((4 * 7 * 5 * 2 * 2 * 3 * 3 + 4 * 7 * 5 * 2 * 3 * 3))
ok $? 3 'every combination is there, once' "$work/table"
"$table" remedies >"$work/remedies"
ok $? 4 'what a conflict suggests removes it' "$work/remedies"
# The sentences of the design, looked up by hand.
{
    grep -qxF 'amqp pgsql unset outbox=1 immediate=5 delayed=3 -> plan mode=receive_only outbox=1 immediate=5 delayed=3 delay_by=transport joined=0' "$work/table" &&
    grep -qxF 'amqp pgsql unset outbox=1 immediate=5 delayed=3 by=store -> plan mode=receive_only outbox=1 immediate=5 delayed=3 delay_by=store joined=0' "$work/table" &&
    grep -qxF 'amqp pgsql unset outbox=1 immediate=5 delayed=unset -> plan mode=receive_only outbox=1 immediate=5 delayed=3 delay_by=transport joined=0' "$work/table" &&
    grep -qxF 'kafka none unset outbox=0 immediate=5 delayed=unset -> plan mode=receive_only outbox=0 immediate=5 delayed=0 delay_by=none joined=0' "$work/table" &&
    grep -qxF 'kafka none unset outbox=0 immediate=5 delayed=0 by=store -> delays_by' "$work/table" &&
    grep -qxF 'sqlite sqlite transaction_scope outbox=0 immediate=5 delayed=0 -> plan mode=transaction_scope outbox=0 immediate=5 delayed=0 delay_by=store joined=1' "$work/table" &&
    grep -qxF 'sqlite sqlite receive_only outbox=1 immediate=5 delayed=0 -> plan mode=receive_only outbox=1 immediate=5 delayed=0 delay_by=store joined=0' "$work/table" &&
    grep -qxF 'kafka none transaction_scope outbox=1 immediate=0 delayed=3 -> mode_unsupported outbox_mode outbox_without_persistence delay_unavailable' "$work/table" &&
    grep -qxF 'kafka mysql sends_atomic_with_receive outbox=0 immediate=5 delayed=0 -> plan mode=sends_atomic_with_receive outbox=0 immediate=5 delayed=0 delay_by=none joined=0' "$work/table" &&
    grep -qxF 'kafka parking sends_atomic_with_receive outbox=0 immediate=0 delayed=3 -> delay_mode' "$work/table" &&
    grep -qxF 'kafka pgsql unset outbox=1 immediate=0 delayed=unset known=position -> plan mode=receive_only outbox=1 immediate=0 delayed=0 delay_by=store joined=0 known=position' "$work/table" &&
    grep -qxF 'kafka pgsql unset outbox=1 immediate=0 delayed=3 known=id+position -> plan mode=receive_only outbox=1 immediate=0 delayed=3 delay_by=store joined=0 known=id+position' "$work/table" &&
    grep -qxF 'amqp sqlite unset outbox=0 immediate=0 delayed=3 known=position -> by_without_outbox position_transport position_retries' "$work/table" &&
    grep -qxF 'delaying none none outbox=1 immediate=5 delayed=3 -> outbox_pointless outbox_without_persistence immediate_retries_with_none delayed_retries_with_none' "$work/table"
}
ok $? 5 'the lines known by heart' "$work/table"
# The table would be worth little if the plugins that were built declared something else.
WAYBILL_PLUGIN_DIR=$top_builddir/plugins "$top_builddir/waybill" plugins --json >"$work/plugins.json" &&
    perl -MJSON::PP -e 'local $/; print "$_->{kind} $_->{name} @{$_->{capabilities}}\n" for grep { $_->{kind} ne "observer" } @{ decode_json(<>) }' \
        "$work/plugins.json" >"$work/built" && test -s "$work/built" &&
    "$table" declared >"$work/declared" && ! grep -vxFf "$work/declared" "$work/built" >"$work/other"
ok $? 6 'the plugins declare what the table takes them to' "$work/other"

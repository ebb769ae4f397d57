#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `waybill conformance` itself, with the sqlite transport: what --only and --except choose, exit status.
. "$top_srcdir/tests/support/tap.sh"
work=$top_builddir/tests/conformance/work/verb
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
cat >"$work/waybill.conf" <<END
endpoints = ( { name = "first"; transport = { plugin = "sqlite"; file = "$work/first.db"; }; },
              { name = "second"; transport = { plugin = "sqlite"; file = "$work/second.db"; }; } );
END
kit() {
    "$top_builddir/waybill" conformance transport -c "$work/waybill.conf" "$@" \
        >"$work/out" 2>"$work/err"
}

plan 12
ok "cases chosen by name" kit --only "the descriptor keeps"
is "they are the plan" "$(sed -n 1p "$work/out")" "1..1"
is "and are run" "$(sed -n 2p "$work/out")" "ok 1 - the descriptor keeps the rules of the ABI"
ok "the first endpoint, when none is named" test -f "$work/first.db" -a ! -f "$work/second.db"
kit --only "the descriptor keeps" --only "limits() says the same"
is "of two texts either chooses" "$(sed -n 1p "$work/out")" "1..2"
kit --only "limits()" --only "the descriptor" --except "keeps" --except "as often"
is "what is left out" "$(sed -n '/^ok/s/^ok [0-9]* - //p' "$work/out")" "limits() says the same twice"
kit --only "the descriptor keepz"
is "a name that no case has is no success" $? 70
is "and says so" "$(cat "$work/out")" 'Bail out! no case has "the descriptor keepz" in its name'
ok "another endpoint" kit --endpoint second --only "the descriptor keeps"
ok "is the one that is tried" test -f "$work/second.db"
kit --only "the descriptor keeps" --time-limit 0
is "a time limit of nothing is none" $? 64
kit --only "the descriptor keeps" --business "$work/waybill.conf"
is "a transport has no business data" $? 64

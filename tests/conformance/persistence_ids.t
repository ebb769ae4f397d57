#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A persistence that remembers ids, and nothing else, passes the kit: what applies to it is tried.
set -eu
work=$top_builddir/tests/conformance/work/persistence-ids
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
cat >"$work/waybill.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queue.db"; };
                persistence = { plugin = "ids"; file = "$work/data.db"; busy_timeout = "5s"; }; } );
END
cat >"$work/expected" <<'END'
skip shared_resource() is stable and keeps within its buffer
skip interface() knows no unknown name
skip batch number 0 is a transaction without an outbox
skip clock() tells the time, within minutes of the host's
skip clock() tells all sessions the same
skip business: without an outbox it is kept by a commit and taken back by a rollback
skip remember: the connection is cut before
skip remember: the request is lost
skip remember: the reply is lost
skip remember: crash: what was reported survives
END
# What needs a capability that it does not declare.
"$top_builddir/waybill" conformance persistence -c "$work/waybill.conf" |
    sed -n 's/^ok [0-9]* - \(.*\) # SKIP ids does not declare .*$/skip \1/p' >>"$work/expected"
"$top_srcdir/tests/conformance/judge" persistence -c "$work/waybill.conf" <"$work/expected"

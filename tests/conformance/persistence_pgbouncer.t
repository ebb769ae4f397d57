#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The pgsql persistence passes the kit behind PgBouncer in transaction mode, nobody having told it; the
# server behind is killed some times.
set -u
support=$top_srcdir/tests/support
work=$top_builddir/tests/conformance/work/persistence-pgbouncer
rm -rf "$work"
mkdir -p "$work"
trap '"$support/server" stop "$work/server" 2>/dev/null' EXIT
trap 'exit 1' HUP INT TERM
"$support/server" start pgbouncer "$work/server" || {
    test $? -eq 77 || { echo "Bail out! PgBouncer does not start"; exit 99; }
    test -z "${CI:-}" || { echo "Bail out! pgbouncer or postgresql is not installed"; exit 99; }
    echo "1..0 # SKIP pgbouncer or postgresql is not installed"
    exit 0
}
eval "$("$support/server" env "$work/server")"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
cat >"$work/waybill.conf" <<END
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queue.db"; };
  persistence = { plugin = "pgsql"; lock_timeout = "5s"; }; } );
END
again="\"$support/server\" crash \"$work/server\" && \"$support/server\" restart \"$work/server\""
"$top_srcdir/tests/conformance/judge" persistence -c "$work/waybill.conf" \
    --business "$top_builddir/conformance/business/.libs/pgsql.so" --crash-server "$again" <<'END'
skip join(NULL) leaves what was not joined
skip what was committed is on the disk when commit() returns
skip a commit without operations is on the disk when commit() returns
skip delayed: what was changed is so on the disk when the call returns
skip delayed: what was stored is on the disk when store() returns
skip delayed: what was taken is so on the disk when fetch() visits it
skip remember: what was remembered is on the disk when remember() returns
skip shared_resource() is stable and keeps within its buffer
skip take_pending(): of two sessions one has a row
skip take_pending(): of two processes one has a row
skip take_pending(): what is gone nobody takes
skip take_pending(): a session that is closed has nothing
skip take_pending(): a killed process has nothing
skip take_pending(): batches, marks and sweeps go on
skip take_pending(): the same number is two rows for two endpoints
END

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The sqlite transport passes the kit.
set -eu
work=$top_builddir/tests/conformance/work/sqlite
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
cat >"$work/waybill.conf" <<END
endpoints = ( { name = "kit"; transport = { plugin = "sqlite"; file = "$work/queues.db"; }; } );
END
"$top_srcdir/tests/conformance/judge" transport -c "$work/waybill.conf" <<'END'
skip no more than the prefetch are in hand
skip the prefetch may grow from 1 to 100
skip the prefetch may change while messages are in hand
skip the prefetch may shrink to 1 while more is in hand
skip release_prefetched() gives others what was not received yet
skip a session goes on receiving after release_prefetched()
skip release_prefetched() of nothing harms nothing
skip release_prefetched() while the session works loses and doubles nothing
skip mode none: release_prefetched() gives others what was not received yet
skip a connection lost while idle: unacknowledged messages come back
skip a connection lost while receive waits
skip a connection lost before messages are acknowledged
skip lost connections are counted once at most
skip a connection lost before a window is sent: what is not confirmed is sent again
skip confirmed messages survive a crash of the server
skip while the server is down and comes back, all that fails is the server's fault
skip a delayed message comes when it is due, as it was sent
skip delays of all kinds in one window
skip what is due already does not wait
skip a delayed message does not need the session that sent it
skip a delayed send that nobody can receive is refused at once
skip a delayed event is refused, or comes when it is due
skip order per key: in one session
skip order per key: through give back
skip order per key: through close and open
skip order per key: in the hands of two sessions
skip order per key: the key comes with its message
skip order per key: nobody else gets a key that is in work
skip sends_atomic_with_receive: what another session sends at once survives a rollback
skip transaction_scope: what another session sends at once survives a rollback
skip sends_atomic_with_receive: a connection lost before commit: all or nothing
skip transaction_scope: a connection lost before commit: all or nothing
skip a send whose request is lost is not said to be confirmed
skip a send whose reply is lost: what is said to be confirmed is there
skip an acknowledgement whose request is lost: what was not acknowledged comes back
skip an acknowledgement whose reply is lost: what was not acknowledged comes back
skip sends_atomic_with_receive: a commit whose request is lost: all or nothing, and what is said is true
skip sends_atomic_with_receive: a commit whose reply is lost: all or nothing, and what is said is true
skip transaction_scope: a commit whose request is lost: all or nothing, and what is said is true
skip transaction_scope: a commit whose reply is lost: all or nothing, and what is said is true
skip further queues: their partitions are others
END

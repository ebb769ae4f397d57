#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The kafka transport passes the kit.
set -u
if [ "${1:-}" != inside ]; then
    exec "$top_srcdir/tests/support/with-servers" kafka -- "$0" inside
fi
work=$top_builddir/tests/conformance/work/kafka
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
# more partitions than sessions, so that two sessions both get messages; and a process that
# was killed is given up sooner
cat >"$work/waybill.conf" <<END
endpoints = ( { name = "$KAFKA_PREFIX";
  transport = { plugin = "kafka"; brokers = "$KAFKA_BROKERS"; partitions = 4;
                session_timeout = "3s"; }; } );
END
"$top_srcdir/tests/conformance/judge" transport -c "$work/waybill.conf" <<'END'
skip the shared resource is always the same
skip a session takes no more than its prefetch from others
skip no more than the prefetch are in hand
skip what was given back comes to others while its session does nothing
skip what a session holds stays with it when another one is opened, and waits
skip the prefetch may shrink to 1 while more is in hand
skip release_prefetched() gives others what was not received yet
skip a session goes on receiving after release_prefetched()
skip release_prefetched() of nothing harms nothing
skip release_prefetched() while the session works loses and doubles nothing
skip mode none: release_prefetched() gives others what was not received yet
skip a delayed message comes when it is due, as it was sent
skip delays of all kinds in one window
skip what is due already does not wait
skip a delayed message does not need the session that sent it
skip a delayed send that nobody can receive is refused at once
skip a delayed event is refused, or comes when it is due
skip confirmed messages survive a crash of the server
skip while the server is down and comes back, all that fails is the server's fault
skip unsubscribe() ends one subscription, and install() makes it again
skip subscriptions() lists what install() subscribed to
skip transaction_scope: a transaction has a handle to share
skip transaction_scope: after commit sends are there and the message is gone
skip transaction_scope: many messages acknowledged in one transaction are gone
skip transaction_scope: what is rolled back again and again is not kept in memory
skip sends_atomic_with_receive: a process that is killed in its commit: all or nothing
skip transaction_scope: a process that is killed in its commit: all or nothing
skip transaction_scope: before commit nothing is visible
skip transaction_scope: after rollback nothing is sent and the message is in hand
skip transaction_scope: after rollback the message can be given back
skip transaction_scope: close without commit undoes all
skip transaction_scope: a transaction over nothing
skip transaction_scope: a send that nobody can receive is refused, the rest is committed
skip transaction_scope: what another session sends at once survives a rollback
skip transaction_scope: two transactions side by side
skip transaction_scope: a connection lost before commit: all or nothing
skip transaction_scope: a commit whose request is lost: all or nothing, and what is said is true
skip transaction_scope: a commit whose reply is lost: all or nothing, and what is said is true
skip transaction_scope: messages held back while others are committed come back after close
skip transaction_scope: a batch that was rolled back is run again, and then one by one
skip transaction_scope: a destination that cannot be is refused, the rest is committed
skip transaction_scope: headers that are too large are refused, the rest is committed
skip transaction_scope: a body that is too large is refused, the rest is committed
skip transaction_scope: after a refused operation rollback undoes the rest
skip transaction_scope: after stop_receiving() what is in hand is committed
skip transaction_scope: messages of further queues in one transaction
END

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
modes=transaction_scope
"$top_builddir/waybill" plugins kafka | grep -q sends_atomic_with_receive ||
    modes="sends_atomic_with_receive $modes"
{
    cat <<'END'
skip the shared resource is always the same
skip a session takes no more than its prefetch from others
skip confirmed messages survive a crash of the server
skip transaction_scope: a transaction has a handle to share
END
    for mode in $modes; do
        cat <<END
skip $mode: after commit sends are there and the message is gone
skip $mode: before commit nothing is visible
skip $mode: after rollback nothing is sent and the message is in hand
skip $mode: after rollback the message can be given back
skip $mode: close without commit undoes all
skip $mode: a transaction over nothing
skip $mode: a send that nobody can receive is refused, the rest is committed
skip $mode: what another session sends at once survives a rollback
skip $mode: two transactions side by side
skip $mode: a connection lost before commit: all or nothing
END
    done
} | "$top_srcdir/tests/conformance/judge" transport -c "$work/waybill.conf"

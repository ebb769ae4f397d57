#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The amqp transport passes the kit, on a RabbitMQ of its own, which is killed once. Other topologies
# come from here as well: transport_amqp_direct.t.
set -u
topology=${topology:-conventional}
support=$top_srcdir/tests/support
work=$top_builddir/tests/conformance/work/amqp-$topology
rm -rf "$work"
mkdir -p "$work"
trap '"$support/server" stop "$work/server" 2>/dev/null' EXIT
trap 'exit 1' HUP INT TERM
"$support/server" start rabbitmq "$work/server" || {
    test $? -eq 77 || { echo "Bail out! RabbitMQ does not start"; exit 99; }
    test -z "${CI:-}" || { echo "Bail out! rabbitmq-server is not installed"; exit 99; }
    echo "1..0 # SKIP rabbitmq-server is not installed"
    exit 0
}
eval "$("$support/server" env "$work/server")"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR AMQP_PASSWORD
cat >"$work/waybill.conf" <<END
endpoints = ( { name = "kit";
  transport = { plugin = "amqp"; host = "$AMQP_HOST"; port = $AMQP_PORT; user = "$AMQP_USER";
                password = "env:AMQP_PASSWORD"; topology = "$topology"; }; } );
END
again="\"$support/server\" crash \"$work/server\" && \"$support/server\" restart \"$work/server\""
{
    cat <<'END'
skip headers keep their order, and doubles stay
skip the shared resource is always the same
skip order per key: in one session
skip order per key: through give back
skip order per key: through close and open
skip order per key: in the hands of two sessions
skip order per key: the key comes with its message
skip order per key: nobody else gets a key that is in work
skip subscriptions() lists what install() subscribed to
skip transaction_scope: a transaction has a handle to share
skip further queues: their partitions are others
END
    for mode in sends_atomic_with_receive transaction_scope; do
        cat <<END
skip $mode: after commit sends are there and the message is gone
skip $mode: many messages acknowledged in one transaction are gone
skip $mode: what is rolled back again and again is not kept in memory
skip $mode: a process that is killed in its commit: all or nothing
skip $mode: before commit nothing is visible
skip $mode: after rollback nothing is sent and the message is in hand
skip $mode: after rollback the message can be given back
skip $mode: close without commit undoes all
skip $mode: a transaction over nothing
skip $mode: a send that nobody can receive is refused, the rest is committed
skip $mode: what another session sends at once survives a rollback
skip $mode: two transactions side by side
skip $mode: a connection lost before commit: all or nothing
skip $mode: a commit whose request is lost: all or nothing, and what is said is true
skip $mode: a commit whose reply is lost: all or nothing, and what is said is true
skip $mode: messages held back while others are committed come back after close
skip $mode: a batch that was rolled back is run again, and then one by one
skip $mode: a destination that cannot be is refused, the rest is committed
skip $mode: headers that are too large are refused, the rest is committed
skip $mode: a body that is too large is refused, the rest is committed
skip $mode: after a refused operation rollback undoes the rest
skip $mode: after stop_receiving() what is in hand is committed
skip $mode: messages of further queues in one transaction
END
    done
} | "$top_srcdir/tests/conformance/judge" transport -c "$work/waybill.conf" --crash-server "$again"

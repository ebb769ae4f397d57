#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A Kafka transport with acks=0, which calls a commit whose reply is lost not committed, is found out in both.
set -u
if [ "${1:-}" != inside ]; then
    exec "$top_srcdir/tests/support/with-servers" kafka -- "$0" inside
fi
work=$top_builddir/tests/conformance/work/unsure
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR
# It gives up while nobody reaches the broker.
cat >"$work/waybill.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "$KAFKA_PREFIX";
  transport = { plugin = "unsure"; brokers = "$KAFKA_BROKERS"; partitions = 4;
                session_timeout = "3s"; confirm_timeout = "2s"; }; } );
END
judge() { # TEXT <EXPECTED
    "$top_srcdir/tests/conformance/judge" transport -c "$work/waybill.conf" --patience 8 --only "$1"
}
{
    judge "a commit whose reply" <<'END'
fail sends_atomic_with_receive: a commit whose reply is lost: all or nothing, and what is said is true
skip transaction_scope: a commit whose reply is lost: all or nothing, and what is said is true
END
    judge "a send whose request" <<'END'
fail a send whose request is lost is not said to be confirmed
END
} | awk '
    /^1\.\./ { plans++; next }
    /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++count) }
    { print }
    END { if (plans == 2) print "1.." count }'

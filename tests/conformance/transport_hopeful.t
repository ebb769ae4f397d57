#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A transport that calls sent what it has written is found out when that does not arrive.
set -u
if [ "${1:-}" != inside ]; then
    exec "$top_srcdir/tests/support/with-servers" rabbitmq -- "$0" inside
fi
work=$top_builddir/tests/conformance/work/hopeful
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR AMQP_PASSWORD
cat >"$work/waybill.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "kit";
  transport = { plugin = "hopeful"; host = "$AMQP_HOST"; port = $AMQP_PORT; user = "$AMQP_USER";
                password = "env:AMQP_PASSWORD"; vhost = "$AMQP_VHOST"; }; } );
END
"$top_srcdir/tests/conformance/judge" transport -c "$work/waybill.conf" --patience 5 --only "is lost" <<'END'
fail a send whose request is lost is not said to be confirmed
skip sends_atomic_with_receive: a commit whose request is lost: all or nothing, and what is said is true
skip transaction_scope: a commit whose request is lost: all or nothing, and what is said is true
skip sends_atomic_with_receive: a commit whose reply is lost: all or nothing, and what is said is true
skip transaction_scope: a commit whose reply is lost: all or nothing, and what is said is true
END

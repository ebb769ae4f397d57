#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A transport that says that it has acknowledged, on a connection that was cut, is found out.
set -u
if [ "${1:-}" != inside ]; then
    exec "$top_srcdir/tests/support/with-servers" rabbitmq -- "$0" inside
fi
work=$top_builddir/tests/conformance/work/lying
rm -rf "$work"
mkdir -p "$work"
WAYBILL_PLUGIN_DIR=$top_builddir/plugins
export WAYBILL_PLUGIN_DIR AMQP_PASSWORD
cat >"$work/waybill.conf" <<END
plugin_path = [ "$top_builddir/tests/conformance/.libs" ];
endpoints = ( { name = "kit";
  transport = { plugin = "lying"; host = "$AMQP_HOST"; port = $AMQP_PORT; user = "$AMQP_USER";
                password = "env:AMQP_PASSWORD"; vhost = "$AMQP_VHOST"; }; } );
END
"$top_srcdir/tests/conformance/judge" transport -c "$work/waybill.conf" --only "a connection lost" <<'END'
fail a connection lost before messages are acknowledged
skip sends_atomic_with_receive: a connection lost before commit: all or nothing
skip transaction_scope: a connection lost before commit: all or nothing
END

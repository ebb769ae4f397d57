#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The persistence kit against PostgreSQL, which it kills and starts again.
. "$top_srcdir/tests/conformance/persistence.sh"
server=$top_srcdir/tests/support/server
trap '"$server" stop "$work/server" 2>/dev/null; clean_work; tap_end' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'exit 129' HUP

message=$("$server" start pgsql "$work/server" 2>&1) || {
    case $? in 77) lacking=1 ;; *) lacking= ;; esac
    [ -n "$lacking" ] && [ -z "${CI:-}" ] || bail_out "$message"
    echo "1..0 # SKIP $message"
    tap_plan=0
    exit 77
}
eval "$("$server" env "$work/server")"
configure kit pgsql ""
kit kit --crash-server "'$server' crash '$work/server' && '$server' restart '$work/server'"
passes kit "pgsql has no shared_resource()
pgsql does not declare join_transport"
done_testing

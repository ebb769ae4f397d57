#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The persistence kit against sqlite.
. "$top_srcdir/tests/conformance/persistence.sh"
trap 'clean_work; tap_end' EXIT

configure kit sqlite "file = \"$work/data.db\";"
kit kit
passes kit "sqlite has no connection to a server
no --crash-server"
done_testing

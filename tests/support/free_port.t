#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A port is its owner's, whether somebody listens or not, until the owner is gone.
. "$top_srcdir/tests/support/tap.sh"

free_port=$top_srcdir/tests/support/free-port
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
mkdir "$TMPDIR/one" "$TMPDIR/other"

plan 6
"$free_port" "$TMPDIR/one" 3 >"$TMPDIR/first"
is "so many as were asked for" "$(sort -u "$TMPDIR/first" | wc -l)" 3
is "each between 12000 and 31999" "$(awk '$1 >= 12000 && $1 < 32000' "$TMPDIR/first" | wc -l)" 3
perl -e 'for (12000 .. 31999) { symlink "$ARGV[0]/one", "$ARGV[0]/waybill-ports-$</$_" }' "$TMPDIR"
is "nobody gets what is somebody's" "$("$free_port" "$TMPDIR/other" 2>&1)" "free-port: no free port"
rmdir "$TMPDIR/one"
ok "but when its owner is gone" "$free_port" "$TMPDIR/other"
ok "an owner has to be there" sh -c '! "$0" "$1" 2>"$2"' "$free_port" "$TMPDIR/nobody" "$TMPDIR/error"
is "and it is named" "$(cat "$TMPDIR/error")" "free-port: there is no \"$TMPDIR/nobody\""

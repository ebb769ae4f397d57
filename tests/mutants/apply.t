#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Each mutant still applies, exactly: one that does not is tried by nobody, and only the whole of check-mutants would tell.
set -u
here=${top_srcdir:?}/tests/mutants
command -v patch >/dev/null || { echo "1..0 # SKIP there is no patch(1)"; exit 0; }

# Its name where it does not apply, or does not say what it breaks and who has to notice.
stale() { # FILE
    { grep -q '^what: .' "$1" && grep -q '^test: .' "$1"; } || { basename "$1" .patch; return; }
    tail -n +3 "$1" | patch -s -f -F0 -p1 -d "$top_srcdir" --dry-run -r - >/dev/null 2>&1 || basename "$1" .patch
}

count=0 bad=
for file in "$here"/*.patch; do
    count=$((count + 1))
    bad="$bad $(stale "$file")"
done
echo 1..2
test "$count" -gt 800 && echo "ok 1 - there are $count mutants" || echo "not ok 1 - there are $count mutants"
test -z "${bad// /}" && echo "ok 2 - each applies" || { echo "not ok 2 - each applies"; echo "# not:" $bad; }
